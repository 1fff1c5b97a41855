"""`plimsoll service` on a real cluster: what it measures, and that it changes nothing."""

import json
import signal
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families as parsed

from lab.load.load_generator import DEMO_WEIGHTS, Load, LoadOrder
from lab.local_cluster.local_cluster import LocalCluster
from tests.end_to_end.test_auto import SETTINGS
from tests.support.alert_rules import OF_DAY_LIMITS, OF_RUNS, OF_TLS, used_metrics
from tests.support.cli_on_cluster import HANG_S, Running, Shell, placement, wait_until

TOPIC = "served"
LISTEN = '\n[service]\nlisten = "127.0.0.1:0"\napi = true\n'


def got(url: str) -> tuple[int, str]:
    """Status and text of a response."""
    try:
        with urllib.request.urlopen(url, timeout=HANG_S) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.code, exc.read().decode()


def address(running: Running) -> str:
    text = running.wait_for(lambda found: "/metrics\n" in found)
    return text.partition("metrics on ")[2].partition("/metrics\n")[0]


def scraped(url: str) -> dict[str, dict[tuple[str, ...], float]]:
    """Samples by name, and by the values of their labels."""
    status, text = got(f"{url}/metrics")
    assert status == 200
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in parsed(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


@pytest.mark.kafka
@pytest.mark.spark
def test_a_read_only_service_measures_a_real_cluster_and_changes_nothing(
    new_cluster: LocalCluster, tmp_path: Path
) -> None:
    new_cluster.create_topic(TOPIC, [[1]] * 8)
    order = LoadOrder(topic=TOPIC, bytes_per_s=5_000_000.0, weights=DEMO_WEIGHTS)
    load = Load(new_cluster.processes, new_cluster.bootstrap, order, name="served")
    load.start()
    (tmp_path / "plimsoll.toml").write_text(SETTINGS + LISTEN)
    shell = Shell(tmp_path, new_cluster.bootstrap)
    before = placement(new_cluster.bootstrap, TOPIC)
    with shell.start("service") as running:
        url = address(running)
        wait_until(lambda: got(f"{url}/readyz") == (200, "ok\n"))
        running.wait_for(lambda text: "\nplan ready: " in text)
        wait_until(lambda: scraped(url)["plimsoll_decision_info"] == {("offer", ""): 1})
        found = scraped(url)
        status, plan = (json.loads(got(f"{url}/api/v1/{d}")[1]) for d in ("status", "plan"))
        assert got(f"{url}/livez") == (200, "ok\n")
        assert running.stop() == 0, running.log.read_text()
    load.finish()
    assert TOPIC in {partition["topic"] for partition in status["partitions"]}
    assert len(plan["plan"]["moves"]) >= 1
    assert found["plimsoll_brokers"]["alive",] == 3
    assert found["plimsoll_partitions"][()] >= 8
    assert found["plimsoll_partitions_offline"] == {(): 0}
    assert found["plimsoll_broker_load"]["1", "net_in"] > 100_000
    assert found["plimsoll_broker_deviation_ratio"]["1", "net_in"] == pytest.approx(2, abs=0.2)
    assert found["plimsoll_brokers_outside_tolerance"][()] >= 1
    assert found["plimsoll_plan_moves"][()] >= 1
    assert found["plimsoll_solve_duration_seconds_count"][()] >= 1
    assert found["plimsoll_loop_phase"]["plan ready",] == 1
    assert {*found["plimsoll_runs_total"].values()} == {0}
    assert used_metrics() - OF_RUNS - OF_TLS - OF_DAY_LIMITS - {"up"} <= {*found}
    assert placement(new_cluster.bootstrap, TOPIC) == before
    assert shell.runs() == []


@pytest.mark.kafka
@pytest.mark.spark
def test_a_reload_during_a_run_waits_for_its_end_and_counts_continue(
    new_cluster: LocalCluster, tmp_path: Path
) -> None:
    new_cluster.create_topic(TOPIC, [[1]] * 8)
    order = LoadOrder(topic=TOPIC, bytes_per_s=5_000_000.0, weights=DEMO_WEIGHTS)
    load = Load(new_cluster.processes, new_cluster.bootstrap, order, name="reloaded")
    load.start()
    (tmp_path / "plimsoll.toml").write_text(SETTINGS + LISTEN)
    shell = Shell(tmp_path, new_cluster.bootstrap)
    with shell.start("service", "--auto", "--limits", "eager", "--allow-changes") as running:
        url = address(running)
        running.wait_for(lambda text: "\nrunning: " in text)
        running.process.send_signal(signal.SIGHUP)
        running.wait_for(lambda text: "\nsettling: run " in text)
        running.wait_for(lambda text: "settings read again" in text)
        # The new loop: it has measured the cluster once more.
        running.wait_for(lambda text: "\nbalanced: " in text.partition("settings read again")[2])
        wait_until(lambda: got(f"{url}/readyz") == (200, "ok\n"))
        found = scraped(url)
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(HANG_S) == 0, running.log.read_text()
    load.finish()
    runs = shell.runs()
    assert {run["event"] for run in runs} == {"ended"}
    assert found["plimsoll_runs_total"]["done",] == len(runs) >= 1
    assert found["plimsoll_runs_total"]["stopped",] == 0
    assert found["plimsoll_moves_total"]["done",] >= 1
    assert found["plimsoll_run_active"] == {(): 0}
    assert found["plimsoll_settings_reloads_total"]["done",] == 1
    assert found["plimsoll_log_messages_total"]["error",] == 0
