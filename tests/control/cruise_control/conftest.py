"""The API of a service without a loop, and its client."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from control.cruise_control.cruise_control import CruiseControl
from control.service.service_state import ServiceState
from tests.support.control.cruise_bench import CruiseClient, served
from tests.support.control.cruise_site import Start, starting


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "plimsoll")


@pytest.fixture
def state() -> ServiceState:
    return ServiceState()


@pytest.fixture
def parts(tmp_path: Path, state: ServiceState) -> Iterator[CruiseControl]:
    with CruiseControl(tmp_path, state) as found:
        yield found


@pytest.fixture
def client(parts: CruiseControl) -> Iterator[CruiseClient]:
    with served(parts) as found:
        yield found


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with starting(tmp_path) as found:
        yield found
