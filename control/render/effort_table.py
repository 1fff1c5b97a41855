"""The plans of all efforts as a table, and what one plan gains."""

from collections.abc import Sequence

from control.cli.output_types import GainAnswer, StageAnswer, StagesAnswer
from control.planning.effort_stages import EffortStage
from control.planning.plan_gain import PlanGain
from control.render.text import table
from model.goals.effort import Effort
from model.snapshot.snapshot import dimension_words
from model.units import bytes_text, deviation_text, seconds_text

HEADERS = (
    "effort",
    "replica moves",
    "leader changes",
    "to copy",
    "duration",
    "outside tolerance",
    "gain",
    "gain of copies",
)


def stages_text(stages: Sequence[EffortStage]) -> str:
    """The table of efforts, and below it what each leaves."""
    rows = [[stage.effort.value, *_cells(stage)] for stage in stages]
    notes = "".join(f"{stage.effort}: {note}\n" for stage in stages for note in stage.notes)
    return table(HEADERS, rows) + (f"\n{notes}" if notes else "")


def _cells(stage: EffortStage) -> list[str]:
    if stage.gain is None:
        return ["-"] * (len(HEADERS) - 1)
    return [
        f"{stage.replica_moves:,}",
        f"{stage.leader_changes:,}",
        bytes_text(stage.bytes_to_copy),
        "-" if stage.seconds is None else _duration(stage.seconds),
        _outside(stage),
        stage.gain.share_text,
        stage.gain.per_byte_text if stage.moves else "-",
    ]


def _duration(seconds: float) -> str:
    return f"~{seconds_text(seconds)}" if seconds else "0 s"


def _outside(stage: EffortStage) -> str:
    """How many brokers remain outside, and the furthest: `2, broker 1 bytes in +12 %`."""
    if stage.outside is None:
        return "-"
    if not stage.outside:
        return "none"
    worst = stage.outside[0]
    count = len({o.broker for o in stage.outside})
    off = f"{dimension_words(worst.dimension)} {deviation_text(worst.deviation)}"
    return f"{count:,}, broker {worst.broker} {off}"


def gain_answer(gain: PlanGain, seconds: float | None) -> GainAnswer:
    """The gain of a plan as JSON has it."""
    return GainAnswer.of(gain, duration_s=seconds)


def gain_line(effort: Effort, gain: PlanGain, seconds: float | None) -> str:
    """`effort good: gain 94.7 % of the imbalance ...; about 2 min 10 s`."""
    took = "" if seconds is None else f"; a run takes about {seconds_text(seconds)}"
    return f"effort {effort}: {gain.words}{took}"


def stages_answer(stages: Sequence[EffortStage]) -> StagesAnswer:
    """The table as JSON."""
    return StagesAnswer(stages=tuple(_answer(stage) for stage in stages))


def _answer(stage: EffortStage) -> StageAnswer:
    gain = None if stage.gain is None else gain_answer(stage.gain, stage.seconds)
    outside = None if stage.outside is None else len({o.broker for o in stage.outside})
    plan = stage.plan.hash if stage.plan is not None and stage.plan.moves else None
    return StageAnswer.of(stage, gain=gain, plan=plan, brokers_outside=outside, notes=stage.notes)
