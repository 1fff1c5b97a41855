"""The hourly maintenance, without Spark."""

import logging
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from collector.history.forecast_slots import SlotForecaster
from collector.history.history_settings import HistorySettings, Horizon
from collector.history.retention import HistoryKeeper, url_of
from collector.history.weekly_forecast import WeeklyForecast
from model.errors import PlimsollError
from tests.collector.history.test_forecast_slots import weekly_forecast

SESSION: Any = SimpleNamespace(
    sparkContext=SimpleNamespace(setLocalProperty=lambda _name, _value: None)
)


class TwoRounds(threading.Event):
    """Is set in its second wait."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waits.append(cast("float", timeout))
        if len(self.waits) == 2:
            self.set()
        return self.is_set()


def test_an_unreachable_store_is_named_and_tried_again_in_an_hour(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = weekly_forecast()
    answers: list[WeeklyForecast | PlimsollError] = [PlimsollError("S3 is away."), made]

    def renew(*_: object) -> WeeklyForecast:
        answer = answers.pop(0)
        if isinstance(answer, PlimsollError):
            raise answer
        return answer

    keeper = HistoryKeeper(HistorySettings(), tmp_path, "c1", lambda: 3600 + 600)
    monkeypatch.setattr(keeper, "renew", renew)
    closing, ahead = TwoRounds(), SlotForecaster(Horizon.DAY, lambda: 0.0)
    with caplog.at_level(logging.WARNING, "plimsoll.collector"):
        keeper.run(SESSION, closing, ahead)
    assert "S3 is away. It is tried again in an hour." in caplog.text
    assert ahead.forecast is made
    # Five minutes after the next hour begins.
    assert closing.waits == [3600 - 600 + 300] * 2


def test_a_folder_becomes_a_url_and_a_url_is_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert url_of(str(tmp_path / "a b")) == f"file://{tmp_path}/a%20b"
    assert url_of("loads") == f"file://{tmp_path}/loads"
    assert url_of("s3a://ops/plimsoll/") == "s3a://ops/plimsoll"
    assert url_of("file:/loads") == "file:/loads"
