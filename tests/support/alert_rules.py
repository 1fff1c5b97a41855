"""The metrics that the dashboard and the alert rules in `deploy` use."""

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml  # type: ignore[import-untyped]

from tests.support.paths import ROOT

DASHBOARD = ROOT / "deploy" / "grafana-dashboard.json"
ALERTS = ROOT / "deploy" / "prometheus-alerts.yml"
OF_RUNS = {"plimsoll_run_moves"}
"""Metrics that have no value before the first run."""
OF_TLS = {"plimsoll_tls_certificate_end_timestamp_seconds"}
"""Metrics of a service with a certificate."""
OF_DAY_LIMITS = {"plimsoll_limit_runs_left", "plimsoll_limit_left_bytes"}
"""Metrics of a service whose limits count runs or bytes per day."""
_WORD = re.compile(r"\b(?:plimsoll_|process_)\w+|\bup\b")
_SELECTOR = re.compile(r"(\w+)\{([^}]*)\}")
_MATCHER = re.compile(r'(\w+)(=~|=)"([^"]*)"')


def alerts() -> list[dict[str, Any]]:
    """The alert rules."""
    (group,) = yaml.safe_load(ALERTS.read_text())["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return found


def expressions() -> list[str]:
    """Every expression of both."""
    panels = [target["expr"] for panel in dashboard()["panels"] for target in panel["targets"]]
    variables = [v["query"] for v in dashboard()["templating"]["list"]]
    return panels + variables + [rule["expr"] for rule in alerts()]


def used_metrics() -> set[str]:
    """Names of the samples that any expression reads."""
    return {name for text in expressions() for name in _WORD.findall(text)}


def matchers() -> Iterator[tuple[str, str, str]]:
    """Metric, label and value of every comparison with a label; of `a|b` both."""
    for text in expressions():
        for name, inner in _SELECTOR.findall(text):
            for label, _, values in _MATCHER.findall(inner):
                for value in values.split("|"):
                    yield name, label, value
