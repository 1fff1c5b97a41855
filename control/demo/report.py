"""What the demo tells at its end."""

from control.render.plan_text import load_text, table
from control.render.run_report import run_text
from model.files import FileModel
from model.plan.plan import PlanStatus
from model.run import RunReport, RunState
from model.snapshot.snapshot import Resource
from model.units import bytes_text, count_text, percent_text, seconds_text

LEVEL_SHARE = 0.10
"""The demo's load is made so that a level within this exists."""


class BrokerLine(FileModel):
    """One broker's measured load before and after."""

    id: int
    rack: str | None
    before: dict[Resource, float]
    after: dict[Resource, float]


class DemoReport(FileModel):
    """The whole demo in figures."""

    level_within: float
    """Largest measured deviation of a broker from the level at the end."""
    brokers: tuple[BrokerLine, ...]
    objective_before: float
    objective: float
    bound: float
    plan_status: PlanStatus
    brokers_ready_s: float
    """From the start of the demo, once every jar is there; so are the next two."""
    planned_s: float
    level_s: float | None
    """None if it never was level."""
    contact_to_plan_s: float
    """From plimsoll's first answer of the cluster."""
    run: RunReport
    later_moves: int
    """Moves of runs after the first one."""
    quiet_s: float
    """How long the cluster was watched after it was level."""
    longest_stall_s: float
    """Longest gap between acknowledgements of a partition from the run on."""
    acknowledged: int
    read: int
    lost: int
    duplicated: int
    tier_segments: tuple[int, int] | None
    """Segments in the remote tier, seen through S3: count, bytes; None without one."""

    @property
    def good(self) -> bool:
        """Level, nothing lost, nothing twice, and quiet."""
        return (
            self.level_within <= LEVEL_SHARE
            and self.run.state is RunState.DONE
            and self.acknowledged == self.read
            and not (self.lost or self.duplicated or self.later_moves)
        )


def report_text(report: DemoReport) -> str:
    """The report as people read it."""
    resources = (Resource.NET_IN, Resource.NET_OUT)
    rows = [
        [
            str(b.id),
            b.rack or "-",
            *(
                load_text(r, loads[r])
                for r in resources
                for loads in (b.before, b.after)
            ),
        ]
        for b in report.brokers
    ]
    headers = ["broker", "rack", "in before", "in after", "out before", "out after"]
    return "\n".join([table(headers, rows), run_text(report.run), *_lines(report), ""])


def _lines(report: DemoReport) -> list[str]:
    gap = max(0.0, report.objective - report.bound)
    level_s = report.level_s
    level = "never" if level_s is None else f"after {seconds_text(level_s)}"
    return [
        f"plan: {report.plan_status}, objective {report.objective_before:.6g} -> "
        f"{report.objective:.6g}, bound {report.bound:.6g}, gap {gap:.3g}; "
        f"{seconds_text(report.contact_to_plan_s)} from first contact",
        f"since start: brokers ready after {seconds_text(report.brokers_ready_s)}, "
        f"planned after {seconds_text(report.planned_s)}, level {level}",
        f"level: largest deviation {percent_text(report.level_within)}",
        f"quiet: {seconds_text(report.quiet_s)} watched, "
        f"{count_text(report.later_moves, 'further move')}",
        f"producer: longest stall {seconds_text(report.longest_stall_s)}",
        f"records: {report.acknowledged:,} acknowledged, {report.read:,} read, "
        f"{report.lost:,} lost, {report.duplicated:,} duplicated",
        *_tier(report.tier_segments),
    ]


def _tier(segments: tuple[int, int] | None) -> list[str]:
    if segments is None:
        return []
    count, size = segments
    return [
        f"tier: {count_text(count, 'segment')}, {bytes_text(size)}, seen through S3"
    ]
