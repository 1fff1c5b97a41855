"""Goals of Cruise Control's own properties: what requests mean that name none."""

from pathlib import Path
from typing import Any

import pytest

from control.cruise_control.cruise_control import CruiseControl
from control.cruise_control.goal_names import ALL, RULES
from control.cruise_control.goal_properties import NO_PROPERTIES, GoalProperties, goal_properties
from control.service.service_state import ServiceState
from model.errors import ConfigError
from tests.control.cruise_control.test_dry_runs import UNEVEN, planned, result
from tests.control.cruise_control.test_reads import seen
from tests.support.control.cruise_bench import served

PACKAGE = "com.linkedin.kafka.cruisecontrol.analyzer.goals"
STRIMZI = f"""\
default.goals={PACKAGE}.RackAwareGoal,{PACKAGE}.DiskCapacityGoal, \\
  {PACKAGE}.LeaderReplicaDistributionGoal
goals={PACKAGE}.RackAwareGoal,{PACKAGE}.NetworkInboundUsageDistributionGoal
hard.goals={PACKAGE}.RackAwareGoal,{PACKAGE}.DiskCapacityGoal
metric.reporter.topic=strimzi.cruisecontrol.metrics
capacity.config.file=/opt/cruise-control/custom-config/capacity.json
webserver.security.enable=true
webserver.auth.credentials.file=/opt/cruise-control/api-auth-config/cruise-control.authFile
ssl.keystore.type=PKCS12
plimsoll.triggers.uneven_load=act
num.partition.metrics.windows=1
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "cruisecontrol.properties"
    path.write_text(text)
    return path


def test_goals_are_read_by_their_short_names_and_a_warning_names_the_rest(tmp_path: Path) -> None:
    found = goal_properties(written(tmp_path, STRIMZI))
    assert found.defaults == ("RackAwareGoal", "DiskCapacityGoal", "LeaderReplicaDistributionGoal")
    assert {*found.supported} == {*found.defaults, "NetworkInboundUsageDistributionGoal"}
    (words,) = found.warnings
    assert words.endswith(
        "cruisecontrol.properties: plimsoll does not use: num.partition.metrics.windows"
    )


def test_goals_without_a_counterpart_are_named(tmp_path: Path) -> None:
    text = "default.goals=a.NoSuchGoal,CpuCapacityGoal\nhard.goals=CpuUsageDistributionGoal,Odd\n"
    found = goal_properties(written(tmp_path, text))
    assert found.defaults == ("CpuCapacityGoal",)
    assert found.supported == ALL
    unknown, soft = found.warnings
    assert unknown.endswith("does not know: NoSuchGoal, Odd")
    assert "hard.goals has goals that are balanced here, and are no rules: CpuUsage" in soft


def test_without_goals_nothing_changes(tmp_path: Path) -> None:
    assert goal_properties(written(tmp_path, "default.goals=\n")) == NO_PROPERTIES
    with pytest.raises(ConfigError, match="none"):
        goal_properties(tmp_path / "none")


def balanced(document: Any) -> set[str]:
    return {goal["goal"] for goal in document["goalSummary"]} - {*RULES}


def test_a_request_without_goals_balances_the_default_ones(
    tmp_path: Path, state: ServiceState
) -> None:
    named = GoalProperties(
        defaults=("RackAwareGoal", "LeaderReplicaDistributionGoal"),
        supported=("RackAwareGoal", "LeaderReplicaDistributionGoal", "CpuCapacityGoal"),
    )
    with CruiseControl(tmp_path, state, named=named) as parts, served(parts) as client:
        seen(tmp_path, state, parts, UNEVEN)
        query = "rebalance?json=true&dryrun=true"
        assert balanced(planned(client, query)) == {"LeaderReplicaDistributionGoal"}
        assert balanced(planned(client, f"{query}&goals=RackAwareGoal")) == set()
        reply = result(client, "POST", f"{query}&goals=CpuUsageDistributionGoal")
        assert reply.status == 500
        assert "Supported: [RackAwareGoal, LeaderReplicaDistributionGoal, Cpu" in reply.error
        # What does not balance keeps the goals of plimsoll's own settings.
        repaired = planned(client, "fix_offline_replicas?json=true&dryrun=true")
        assert "NetworkInboundUsageDistributionGoal" in balanced(repaired)
