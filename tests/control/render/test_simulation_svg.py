"""The picture of a simulation names every policy, and none where the plots are."""

import re
from xml.etree import ElementTree

from control.cli.output_types import DayAnswer, HourAnswer, SimulateAnswer, TrialAnswer
from control.render.simulation_svg import TOP, simulation_svg

SVG = "{http://www.w3.org/2000/svg}"


def trial(policy: str) -> TrialAnswer:
    hour = HourAnswer(at_ms=0, outside=0.1, deviation=0.2, imbalance=0.1)
    day = DayAnswer(
        at_ms=0, outside=0.1, imbalance=0.1, runs=1, moves=4, bytes_copied=8, undone=0, regret=0.0
    )
    return TrialAnswer(
        policy=policy,
        outside=0.1,
        imbalance=0.1,
        worst=hour,
        runs=1,
        stopped_runs=0,
        moves=4,
        leader_changes=0,
        bytes_copied=8,
        undone=0,
        regret=0.0,
        held={},
        solves=1,
        turns=24,
        days=(day,),
        hours=(hour,),
    )


def picture(policies: int) -> ElementTree.Element:
    answer = SimulateAnswer(
        cluster_id="c",
        brokers=3,
        partitions=9,
        begin_ms=0,
        days=1,
        seed=1,
        policies=tuple(trial(f"policy-{n}") for n in range(policies)),
    )
    return ElementTree.fromstring(simulation_svg(answer))  # noqa: S314 - our own text


def legend(drawn: ElementTree.Element) -> dict[str, float]:
    texts = [t for t in drawn.iter(f"{SVG}text") if (t.text or "").startswith("policy-")]
    return {(t.text or "").split(":")[0]: float(t.get("y", "nan")) for t in texts}


def test_every_policy_is_named_above_the_plots() -> None:
    heights = []
    for count in (1, 3, 4, 7):
        drawn = picture(count)
        named = legend(drawn)
        assert list(named) == [f"policy-{n}" for n in range(count)]
        assert sorted(named.values()) == list(named.values())
        moved = [g.get("transform", "") for g in drawn.iter(f"{SVG}g")]
        lower = int(re.findall(r"translate\(0 (\d+)\)", moved[0])[0]) if moved else 0
        assert max(named.values()) < TOP + lower - 10
        heights.append(float(drawn.get("height", "nan")) - lower)
    assert len(set(heights)) == 1
