"""CPU is in cores from the sources to the screen, and percent of one core in files."""

import json
from pathlib import Path

import numpy as np
import pytest

from control.render.cluster_status import capacity_cell
from control.settings.capacity_table import CapacitySettings, CapacityTable, capacities_of
from model.cpu import from_file, to_file
from model.exchange.capacity import read_capacities
from model.goals.goals import Goal, Goals
from model.ids import BrokerId
from model.plan.plan import BrokerChange
from model.plan.remaining import OverLimit
from model.run import BrokerBalance
from model.snapshot.capacities import DEFAULT, with_capacities
from model.snapshot.file import as_document, of_document, read_snapshot
from model.snapshot.snapshot import BrokerState, Resource, Snapshot
from tui.viewmodel.brokers.headline import amount

DEMO = Path(__file__).parents[1] / "fixtures/demo.json"
CORES, PERCENT = 3.57, 357.0


def with_cpu() -> Snapshot:
    document = as_document(read_snapshot(DEMO))
    document["header"]["resources"].append("cpu")
    document["header"]["brokers"][0]["capacity"]["cpu"] = 800.0
    for name, value in (("loads", PERCENT), ("measured", False)):
        for row in document["partitions"][name]:
            row.append(value)
    return of_document(document)


def test_a_snapshot_file_has_percent_of_one_core_and_a_snapshot_cores() -> None:
    snapshot = with_cpu()
    assert snapshot.partitions.loads[:, -1].tolist() == [CORES] * len(snapshot)
    assert snapshot.header.brokers[0].capacity[Resource.CPU] == 8.0
    written = as_document(snapshot)
    assert {row[-1] for row in written["partitions"]["loads"]} == {PERCENT}
    assert written["header"]["brokers"][0]["capacity"]["cpu"] == 800.0
    assert as_document(of_document(written)) == written


@pytest.mark.parametrize("dimension", ["cpu", "cpu@tue-14"])
def test_a_plan_and_a_report_have_percent_of_one_core_in_json(dimension: str) -> None:
    loads, nothing = {dimension: CORES, "net_in": 5.0}, dict[str, float]()
    change = BrokerChange(
        id=BrokerId(1),
        rack=None,
        state=BrokerState.ALIVE,
        before=loads,
        after=loads,
        deviation_before={dimension: 0.5},
        deviation_after=nothing,
        replicas_before=1,
        replicas_after=1,
        capacity={"cpu": 8.0},
    )
    document = json.loads(change.model_dump_json())
    assert document["before"] == {dimension: PERCENT, "net_in": 5.0}
    assert document["deviation_before"] == {dimension: 0.5}
    assert document["capacity"] == {"cpu": 800.0}
    assert BrokerChange.model_validate_json(json.dumps(document)) == change
    balance = BrokerBalance(
        id=BrokerId(1),
        before=loads,
        planned=loads,
        achieved=loads,
        deviation_before=nothing,
        deviation_planned=nothing,
        deviation_achieved=nothing,
    )
    text = balance.model_dump_json()
    assert json.loads(text)["achieved"][dimension] == PERCENT
    assert BrokerBalance.model_validate_json(text) == balance


def test_limits_and_floors_have_percent_of_one_core_in_json() -> None:
    over = OverLimit(
        broker=BrokerId(1), dimension="cpu", before=CORES, after=1, limit=2, capacity=4
    )
    document = json.loads(over.model_dump_json())
    assert (document["before"], document["capacity"]) == (PERCENT, 400.0)
    assert OverLimit.model_validate_json(json.dumps(document)) == over
    goals = Goals(balance=(Goal(resource=Resource.CPU, floor=0.5),))
    text = goals.model_dump_json()
    assert json.loads(text)["balance"][0]["floor"] == 50.0
    assert Goals.model_validate_json(text) == goals


@pytest.mark.parametrize("value", ['"800"', '{"num.cores": "8"}'])
def test_cores_of_a_capacity_file_and_of_the_settings_are_equal(tmp_path: Path, value: str) -> None:
    path = tmp_path / "capacity.json"
    entry = f'{{"brokerId": "-1", "capacity": {{"CPU": {value}}}}}'
    path.write_text(f'{{"brokerCapacities": [{entry}]}}')
    table = capacities_of(CapacitySettings(default=CapacityTable(cpu=8)), None)
    assert table is not None
    of_file = read_capacities(path)
    for given in (of_file, table):
        assert given.by_broker[DEFAULT].capacity == {Resource.CPU: 8.0}
    broker = with_capacities(with_cpu(), of_file).header.brokers[0]
    assert capacity_cell(broker, Resource.CPU) == "8 cores (capacity file)"


def test_the_screen_shows_cores() -> None:
    assert amount(Resource.CPU, CORES) == "3.57 cores"
    assert amount(Resource.CPU, 1.0) == "1 core"


def test_every_figure_of_a_file_survives_both_conversions() -> None:
    rng = np.random.default_rng(5)
    for percent in np.round(10 ** rng.uniform(-3, 6, 2000), 6).tolist():
        assert to_file("cpu", from_file("cpu", percent)) == percent
