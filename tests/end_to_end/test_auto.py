"""`run --auto` keeps running: it acts when the load shifts, and not while balanced."""

import time
from pathlib import Path

import pytest

from lab.load.load_generator import DEMO_WEIGHTS, Load, LoadOrder
from lab.local_cluster.local_cluster import LocalCluster
from tests.support.cli_on_cluster import Shell

TOPIC = "shifting"
SETTINGS = """
window_s = 5.0

[goals.cooldown]
replicated = {rest_s = 0, return_window_s = 0}
tiered = {rest_s = 0, return_window_s = 0}
shared = {rest_s = 0, return_window_s = 0}
"""
QUIET_S = 10.0


@pytest.mark.kafka
@pytest.mark.spark
def test_a_shifted_load_is_balanced_once_and_nothing_moves_afterwards(
    new_cluster: LocalCluster, tmp_path: Path
) -> None:
    new_cluster.create_topic(TOPIC, [[1]] * 8)
    order = LoadOrder(topic=TOPIC, bytes_per_s=5_000_000.0, weights=DEMO_WEIGHTS)
    load = Load(new_cluster.processes, new_cluster.bootstrap, order, name="shift")
    load.start()
    (tmp_path / "plimsoll.toml").write_text(SETTINGS)
    shell = Shell(tmp_path, new_cluster.bootstrap)
    with shell.start("run", "--auto", "--limits", "eager", "--allow-changes") as running:
        running.wait_for(lambda text: is_balanced_after(text, runs=1))
        assert len(shell.runs()) == 1, running.log.read_text()
        load.shift(tuple(reversed(DEMO_WEIGHTS)))
        running.wait_for(lambda text: is_balanced_after(text, runs=2))
        time.sleep(QUIET_S)
        assert len(shell.runs()) == 2, running.log.read_text()
        assert running.stop() == 0, running.log.read_text()
    balance = load.finish()
    assert balance.acknowledged_records == balance.read_records > 0
    assert balance.duplicated_records == 0


def is_balanced_after(text: str, *, runs: int) -> bool:
    """Whether so many runs have ended, with the cluster balanced afterwards."""
    parts = text.split("\nsettling: run ")
    return len(parts) > runs and "\nbalanced: " in parts[runs]
