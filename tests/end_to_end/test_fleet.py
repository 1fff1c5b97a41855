"""`plimsoll service --fleet` on two real clusters, one of which hangs."""

import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from clients.jvm.jars import default_cache_dir
from lab.load.load_generator import DEMO_WEIGHTS, Load, LoadOrder
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan
from tests.end_to_end.test_auto import SETTINGS
from tests.end_to_end.test_service import TOPIC, address, got, scraped
from tests.support.cli_on_cluster import HANG_S, Shell, wait_until

FRESH_S = 10.0
FLEET = 'state_dir = "fleet"\n[service]\nlisten = "127.0.0.1:0"\napi = true\n'


class FleetShell(Shell):
    """Commands on several clusters, whose settings say where they are."""

    @property
    def environment(self) -> dict[str, str]:
        own = ("PLIMSOLL_STATE_DIR", "PLIMSOLL_BOOTSTRAP_SERVER")
        return {k: v for k, v in super().environment.items() if k not in own}


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.slow
def test_a_cluster_that_hangs_does_not_delay_the_other_and_both_share_spark(
    new_cluster: LocalCluster, tmp_path: Path
) -> None:
    with LocalCluster(default_cache_dir(), LocalPlan(brokers=1, tier=False)) as other:
        text = FLEET
        for name, cluster in (("east", new_cluster), ("west", other)):
            (tmp_path / f"{name}.toml").write_text(
                f'bootstrap_server = "{cluster.bootstrap}"\nstate_dir = "{tmp_path / name}"\n'
                + SETTINGS
            )
            text += f'[clusters.{name}]\nconfig = "{name}.toml"\n'
        (tmp_path / "fleet.toml").write_text(text)
        shell = FleetShell(tmp_path, "")
        with shell.start("service", "--fleet", "fleet.toml") as running:
            url = address(running)

            def row(name: str) -> Mapping[str, Any]:
                found = json.loads(got(f"{url}/api/v1/fleet")[1])["clusters"]
                rows: dict[str, Mapping[str, Any]] = {cluster["name"]: cluster for cluster in found}
                return rows[name]

            def is_running(name: str) -> bool:
                return bool(row(name)["service"] == "running" and row(name)["decision"])

            wait_until(lambda: is_running("east") and is_running("west"))
            children = psutil.Process(running.process.pid).children(recursive=True)
            assert sum(child.name() == "java" for child in children) == 1
            stopped = other.pids["broker-1"]
            os.kill(stopped, signal.SIGSTOP)
            try:
                # Before plimsoll can give up on the other one.
                new_cluster.create_topic(TOPIC, [[1]] * 8)
                order = LoadOrder(topic=TOPIC, bytes_per_s=5_000_000.0, weights=DEMO_WEIGHTS)
                load = Load(new_cluster.processes, new_cluster.bootstrap, order, name="fleet")
                load.start()
                wait_until(lambda: row("east")["decision"] == "offer")
                assert row("east")["worst_broker"]["broker"] == 1
                assert row("east")["data_age_s"] < FRESH_S
                wait_until(lambda: row("west")["phase"] == "cannot connect")
                assert row("west")["service"] == "not ready"
                # Its loads go on being measured by Spark.
                before = scraped(url)["plimsoll_loads_timestamp_seconds"]["east",]
                wait_until(
                    lambda: scraped(url)["plimsoll_loads_timestamp_seconds"]["east",] > before + 10
                )
                assert row("east")["data_age_s"] < FRESH_S
                load.finish()
            finally:
                os.kill(stopped, signal.SIGCONT)
            wait_until(lambda: is_running("west"))
            running.process.send_signal(signal.SIGTERM)
            assert running.process.wait(HANG_S) == 0, running.log.read_text()
    assert "Traceback" not in running.log.read_text()
    assert (tmp_path / "fleet" / "spark.log").exists()
    assert not (tmp_path / "east" / "spark.log").exists()
