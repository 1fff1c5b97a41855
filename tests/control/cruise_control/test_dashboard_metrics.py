"""Metrics under Cruise Control's names, as Strimzi's dashboard queries them."""

import json
import re
import urllib.request
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families as parsed

from control.cruise_control.cruise_control import CruiseControl
from control.service.http_listener import CruiseControlSite, HttpListener, bound
from control.service.service_state import ServiceState
from tests.control.cruise_control.test_dry_runs import planned
from tests.control.cruise_control.test_reads import UNEVEN, seen
from tests.support.control.cruise_bench import ANY, CruiseClient
from tests.support.tui.terminals import LONG_S

PREFIX = "kafka_cruisecontrol_"
QUERIES = Path(__file__).parents[3] / "fixtures" / "strimzi" / "cruise-control-dashboard.json"


def queried() -> set[str]:
    """Names of the metrics of Cruise Control that the dashboard queries, without their prefix."""
    found = [re.findall(rf"{PREFIX}(\w+)", row["expr"]) for row in json.loads(QUERIES.read_text())]
    return {name for names in found for name in names}


def scraped(listener: HttpListener) -> dict[str, float]:
    """Samples without labels under Cruise Control's names, without the part that all have."""
    with urllib.request.urlopen(f"{listener.url}/metrics", timeout=LONG_S) as answer:
        text = answer.read().decode()
    return {
        sample.name.removeprefix(PREFIX): sample.value
        for family in parsed(text)
        for sample in family.samples
        if sample.name.startswith(PREFIX) and not sample.labels
    }


def test_metrics_of_strimzis_dashboard_are_served(
    tmp_path: Path, state: ServiceState, parts: CruiseControl
) -> None:
    cruise = bound(ANY)
    client = CruiseClient(ANY._replace(port=cruise.getsockname()[1]))
    site = CruiseControlSite(cruise, parts)
    with HttpListener(bound(ANY), state, cruise_control=site) as listener:
        before = scraped(listener)
        assert before["loadmonitor_valid_windows_value"] == 0
        assert before["goaloptimizer_proposal_computation_timer_max"] == 0
        seen(tmp_path, state, parts, UNEVEN)
        planned(client, "proposals?json=true", "GET")
        for seconds in (0.25, 0.75):
            state.modelled(seconds)
        for _ in range(3):
            client.get("state?json=true")
        client.post("rebalance?json=true&nothing=1")
        found = scraped(listener)
    assert found["loadmonitor_valid_windows_value"] == 1
    assert found["loadmonitor_monitored_partitions_percentage_value"] == 1
    assert found["executor_ongoing_execution_non_kafka_assigner_value"] == 0
    assert 0 <= found["anomalydetector_balancedness_score_value"] < 100
    assert found["anomalydetector_goal_violation_rate_count"] == 1
    assert found["goaloptimizer_proposal_computation_timer_max"] == 1000 * state.tallies.solve_s > 0
    assert sum(state.tallies.solves.values()) == 1
    assert found["loadmonitor_cluster_model_creation_timer_max"] == 750
    assert found["loadmonitor_cluster_model_creation_timer_99thpercentile"] == 750
    assert found["loadmonitor_cluster_model_creation_timer_mean"] == 500
    assert found["kafkacruisecontrolservlet_state_request_rate_count"] == 3
    assert found["kafkacruisecontrolservlet_rebalance_request_rate_count"] == 1
    assert found.keys() == before.keys()
    assert len(queried()) == 21
    assert found.keys() >= queried()
