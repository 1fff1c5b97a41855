"""The metrics of a scrape, read by Prometheus' own parsers."""

import dataclasses
import logging
import math
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parsed_om
from prometheus_client.parser import text_string_to_metric_families as parsed

from control.loop.loop import Loop
from control.loop.view import Mode
from control.service import metric_specs as specs
from control.service.metric_specs import METRICS, MetricKind
from control.service.scrape import exposition, registry_of
from control.service.service_state import ServiceState
from control.settings.auto_limits import EAGER
from control.settings.trigger_table import Response, Trigger, TriggerTable
from model.errors import ClusterUnreachable
from model.snapshot.replication import Replication
from tests.control.service.test_service_state import UNEVEN, watched
from tests.support.control.loop_parts import (
    CannedObserver,
    RecordingExecutor,
    loop_parts,
    loop_settings,
    with_header,
)
from tests.support.tui.terminals import LONG_S

OPEN_METRICS = "application/openmetrics-text; version=1.0.0"


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "plimsoll")


def scraped(state: ServiceState, accept: str = "") -> str:
    body, _ = exposition(registry_of(state), accept)
    return body.decode()


def samples(families: Iterable[Metric], name: str) -> dict[tuple[str, ...], float]:
    return {
        tuple(sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
        if sample.name == name
    }


@pytest.fixture
def planned(tmp_path: Path) -> ServiceState:
    """The state of a service that has made a plan for three brokers."""
    state = ServiceState()
    observer = CannedObserver(
        [UNEVEN], lacking=Replication(under_replicated=3, offline=1, below_min_isr=2)
    )
    loop = watched(tmp_path, state, loop_parts(observer, None), Mode.READ_ONLY)
    state.begin(loop.settings.goals, loop.settings.tick_s)
    with loop:
        # The turn after the plan is ready decides to offer it.
        assert loop.wait(lambda _view: state.decision == ("offer", ""), LONG_S)
    return state


def test_a_scrape_before_the_first_view_is_valid() -> None:
    state = ServiceState(clock=lambda: 1000.0)
    families = list(parsed(scraped(state)))
    assert samples(families, specs.BEAT.name) == {(): 1000.0}
    assert samples(families, specs.LOAD.name) == {}
    assert samples(families, "process_cpu_seconds_total")[()] > 0


def test_values_are_those_of_the_view(planned: ServiceState) -> None:
    families = list(parsed(scraped(planned)))
    view = planned.view
    assert view is not None
    assert view.plan is not None
    assert view.evaluation is not None

    def of(spec: specs.MetricSpec) -> dict[tuple[str, ...], float]:
        return samples(families, spec.name)

    assert of(specs.BROKERS)["alive",] == 3
    assert of(specs.PARTITIONS) == {(): 9}
    assert (of(specs.UNDER_REPLICATED), of(specs.OFFLINE)) == ({(): 3}, {(): 1})
    assert of(specs.UNDER_MIN_ISR) == {(): 2}
    assert of(specs.LOAD)["2", "net_in"] == 9e6
    assert of(specs.DEVIATION)["2", "net_in"] == pytest.approx(2.0)
    assert of(specs.DEVIATION)["1", "net_in"] == pytest.approx(-1.0)
    assert of(specs.IMBALANCE)["net_in",] == pytest.approx(2.0)
    assert 0 < of(specs.TOLERANCE)["net_in",] < 1
    assert of(specs.OUTSIDE) == {(): 3}
    assert of(specs.SCORE)[()] == view.evaluation.objective
    assert of(specs.PLAN_MOVES) == {(): len(view.plan.moves)}
    assert of(specs.PHASE)["plan ready",] == 1
    assert sum(of(specs.PHASE).values()) == 1
    assert of(specs.CLUSTER) == {("cluster-one", "read-only", "cluster-"): 1}
    assert of(specs.LOADS_AT)[()] == view.snapshot.header.taken_at_ms / 1000  # type: ignore[union-attr]
    assert sum(of(specs.SOLVES).values()) == 1
    assert samples(families, specs.SOLVE_SECONDS.name + "_count") == {(): 1}
    assert samples(families, specs.SOLVE_SECONDS.name + "_bucket")["+Inf",] == 1
    assert of(specs.DECISION) == {("offer", ""): 1}
    assert of(specs.PLAN_WAITS) == {(): 0}
    assert of(specs.RUN_ACTIVE) == {(): 0}


def test_the_gap_is_absent_where_it_is_not_a_share_of_an_improvement(planned: ServiceState) -> None:
    view = planned.view
    assert view is not None
    assert view.plan is not None
    raised = view.plan.objective_before + 1.0
    repair = view.plan.model_copy(update={"objective": raised, "bound": 0.0})
    proved = repair.model_copy(update={"bound": raised})
    exported = []
    for plan in (view.plan, repair, proved):
        planned.see(dataclasses.replace(view, plan=plan))
        exported.append(samples(parsed(scraped(planned)), specs.PLAN_GAP.name))
    assert exported == [{(): view.plan.gap_share}, {}, {(): 0.0}]


def test_every_family_is_declared_and_named_by_the_conventions(planned: ServiceState) -> None:
    declared = {spec.name.removesuffix("_total"): spec for spec in METRICS}
    assert len(declared) == len(METRICS)
    for family in parsed(scraped(planned)):
        if family.name.startswith("process_"):
            continue
        spec = declared[family.name]
        assert (family.type, family.documentation) == (spec.kind.value, spec.help)
        for sample in family.samples:
            assert {*sample.labels} - {"le"} == {*spec.labels}
    for spec in METRICS:
        assert spec.name.startswith("plimsoll_")
        assert spec.name.endswith("_total") == (spec.kind is MetricKind.COUNTER)
        assert not {*spec.labels} & {"topic", "partition", "plan_hash", "run_id"}


def test_openmetrics_is_served_to_those_who_prefer_it(planned: ServiceState) -> None:
    body, content_type = exposition(registry_of(planned), OPEN_METRICS)
    assert content_type.startswith("application/openmetrics-text")
    families = list(parsed_om(body.decode()))  # type: ignore[no-untyped-call]
    assert samples(families, specs.PARTITIONS.name) == {(): 9}
    assert samples(families, specs.SOLVE_SECONDS.name + "_count") == {(): 1}


def test_auto_shows_its_triggers_and_what_is_left_of_the_day(tmp_path: Path) -> None:
    state = ServiceState()
    limits = EAGER.model_copy(update={"runs_per_day": 4, "bytes_per_day": 10**12})
    settings = loop_settings(
        tmp_path,
        mode=Mode.AUTO,
        limits=limits,
        triggers=TriggerTable(uneven_load=Response.OFF, dead_broker=Response.ASK),
    )
    observer = CannedObserver([UNEVEN])
    parts = loop_parts(observer, RecordingExecutor(), decided=state.decided)
    loop = Loop(settings, parts)
    for _ in range(3):
        loop.turn(observer)
    families = list(parsed(scraped(state)))
    triggers = samples(families, specs.TRIGGER.name)
    assert len(triggers) == len(Trigger)
    assert {("off", "uneven_load"), ("ask", "dead_broker"), ("act", "over_capacity")} <= {*triggers}
    assert samples(families, specs.RUNS_LEFT.name) == {(): 4}
    assert samples(families, specs.BYTES_LEFT.name) == {(): 1e12}
    loop.close()


def test_gauges_disappear_with_their_broker(planned: ServiceState, tmp_path: Path) -> None:
    brokers = UNEVEN.header.brokers[1:]
    fewer = with_header(UNEVEN, brokers=brokers)
    observer = CannedObserver([fewer])
    loop = watched(tmp_path, planned, loop_parts(observer, None), Mode.READ_ONLY)
    loop.turn(observer)
    families = list(parsed(scraped(planned)))
    assert {broker for broker, _ in samples(families, specs.LOAD.name)} == {"2", "3"}
    loop.close()


def test_hostile_names_are_escaped(tmp_path: Path) -> None:
    state = ServiceState()
    cluster_id = 'a"b\\c\nplimsoll_partitions 7'
    observer = CannedObserver([with_header(UNEVEN, cluster_id=cluster_id)])
    loop = watched(tmp_path, state, loop_parts(observer, None), Mode.READ_ONLY)
    loop.turn(observer)
    families = list(parsed(scraped(state)))
    ((found, *_),) = samples(families, specs.CLUSTER.name)
    assert found == cluster_id
    assert samples(families, specs.PARTITIONS.name) == {(): 9}
    loop.close()


def test_a_scrape_asks_neither_the_cluster_nor_the_loop(tmp_path: Path) -> None:
    """It succeeds while another thread holds the loop's lock."""
    state = ServiceState()
    observer = CannedObserver([UNEVEN])
    loop: Loop = watched(tmp_path, state, loop_parts(observer, None), Mode.READ_ONLY)
    loop.turn(observer)
    observer.snapshots[:] = [ClusterUnreachable("asked")]
    texts: list[str] = []
    with loop._changed:
        thread = threading.Thread(target=lambda: texts.append(scraped(state)))
        thread.start()
        thread.join(LONG_S)
        assert len(texts) == 1
    assert samples(parsed(texts[0]), specs.PARTITIONS.name) == {(): 9}
    loop.close()


def test_counters_begin_with_zero() -> None:
    """Prometheus sees no increase where a series begins with 1."""
    families = list(parsed(scraped(ServiceState())))
    assert samples(families, specs.RELOADS.name) == {("done",): 0, ("failed",): 0}
    assert samples(families, specs.ERRORS.name)["ClusterUnreachable",] == 0
    assert {*samples(families, specs.RUNS.name).values()} == {0}


def test_no_value_is_infinite(planned: ServiceState) -> None:
    for family in parsed(scraped(planned)):
        for sample in family.samples:
            assert not math.isinf(sample.value), sample
