"""Sizes, rates and time spans wherever a file may contain one."""

import json

import pytest
from pydantic import TypeAdapter, ValidationError

from model.exchange.json_schemas import schema_of
from model.goals.goals import Goals
from model.quantities import ByteSize, Duration, Rate
from model.stop_rules import StopRules


@pytest.mark.parametrize(
    ("kind", "given", "value"),
    [
        (ByteSize, "50MiB", 52_428_800),
        (ByteSize, "50MB", 50_000_000),
        (ByteSize, "0", 0),
        (ByteSize, 7, 7),
        (ByteSize, 5e10, 50_000_000_000),
        (Rate, "50MiB/s", 52_428_800),
        (Duration, "1h30m", 5400),
        (Duration, "0s", 0),
        (Duration, 2.5, 2.5),
    ],
)
def test_a_number_and_a_text_with_a_unit_are_read(kind: type, given: object, value: float) -> None:
    result: float = TypeAdapter(kind).validate_json(json.dumps(given), strict=True)
    assert result == value
    assert isinstance(result, float if kind is Duration else int)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (ByteSize, "50Mb"),
        (ByteSize, -1),
        (ByteSize, 1.5),
        (ByteSize, True),
        (ByteSize, float("nan")),
        (Rate, 0),
        (Rate, "1h"),
        (Duration, "1h1h"),
        (Duration, -0.5),
        (Duration, float("inf")),
        (Duration, None),
    ],
)
def test_anything_else_is_refused(kind: type, given: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(kind).validate_json(json.dumps(given), strict=True)


def test_goals_and_stop_rules_take_units() -> None:
    goals = Goals.model_validate_json(
        json.dumps(
            {
                "balance": [{"resource": "net_in", "floor": "2MiB"}],
                "cooldown": {"tiered": {"rest_s": "10m", "return_window_s": "1d"}},
                "budgets": {"bytes": "1.5TB"},
            }
        )
    )
    assert goals.balance[0].floor == 2 * 2**20
    rest = goals.cooldown
    assert [(c.rest_s, c.return_window_s) for c in rest.values()] == [(600, 86400)]
    assert goals.budgets.bytes == 1_500_000_000_000
    rules = StopRules.model_validate_json('{"calm_s": "1m", "pause_limit_s": "2h"}')
    assert (rules.calm_s, rules.pause_limit_s) == (60, 7200)


def test_the_schema_allows_a_number_or_a_text() -> None:
    given = schema_of("goals")["$defs"]["Budgets"]["properties"]["bytes"]["anyOf"]
    types = [entry["type"] for either in given for entry in either.get("anyOf", [either])]
    assert types == ["number", "string", "null"]
