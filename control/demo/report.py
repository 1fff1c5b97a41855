"""The report at the end of the demo."""

from control.render.run_report import run_text
from control.render.text import load_text, table
from model.files import FileModel
from model.plan.plan import PlanStatus
from model.run import RunReport, RunState
from model.snapshot.snapshot import Resource
from model.units import bytes_text, count_text, percent_text, seconds_text

MOST_DEVIATION = 0.10
"""Deviation from the average that the demo's load allows."""


class BrokerLine(FileModel):
    """Measured load of one broker before and after, bytes/s."""

    id: int
    rack: str | None
    before: dict[Resource, float]
    after: dict[Resource, float]


class DemoReport(FileModel):
    """Figures of the whole demo."""

    level_within: float
    """Largest measured deviation from the average at the end, as a share."""
    brokers: tuple[BrokerLine, ...]
    objective_before: float
    objective: float
    bound: float
    plan_status: PlanStatus
    brokers_ready_s: float
    """Seconds from the start of the demo, after downloads; so are the next two."""
    planned_s: float
    level_s: float | None
    """None if the cluster was never balanced."""
    contact_to_plan_s: float
    """Seconds from the cluster's first response to the plan."""
    run: RunReport
    later_moves: int
    """Moves of runs after the first one."""
    quiet_s: float
    """Seconds that the cluster was observed after it was balanced."""
    longest_stall_s: float
    """Longest gap between acknowledgements of a partition since the run, seconds."""
    acknowledged: int
    read: int
    lost: int
    duplicated: int
    tier_segments: tuple[int, int] | None
    """Count and bytes of the segments in the remote tier; None without a tier."""

    @property
    def good(self) -> bool:
        """Balanced, no record lost or duplicated, and no further moves."""
        return (
            self.level_within <= MOST_DEVIATION
            and self.run.state is RunState.DONE
            and self.acknowledged == self.read
            and not (self.lost or self.duplicated or self.later_moves)
        )


def report_text(report: DemoReport) -> str:
    """Format the report as text."""
    resources = (Resource.NET_IN, Resource.NET_OUT)
    rows = [
        [
            str(b.id),
            b.rack or "-",
            *(load_text(r, loads[r]) for r in resources for loads in (b.before, b.after)),
        ]
        for b in report.brokers
    ]
    headers = ["broker", "rack", "in before", "in after", "out before", "out after"]
    return "\n".join([table(headers, rows), run_text(report.run), *_lines(report), ""])


def _lines(report: DemoReport) -> list[str]:
    gap = max(0.0, report.objective - report.bound)
    level_s = report.level_s
    balanced = "never" if level_s is None else f"after {seconds_text(level_s)}"
    return [
        f"plan: {report.plan_status}, imbalance {report.objective_before:.6g} -> "
        f"{report.objective:.6g}, bound {report.bound:.6g}, gap {gap:.3g}; "
        f"{seconds_text(report.contact_to_plan_s)} from first contact",
        f"from the start: brokers ready after {seconds_text(report.brokers_ready_s)}, "
        f"planned after {seconds_text(report.planned_s)}, balanced {balanced}",
        f"balance: largest deviation {percent_text(report.level_within)}",
        f"afterwards: observed for {seconds_text(report.quiet_s)}, "
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
    return [f"tier: {count_text(count, 'segment')}, {bytes_text(size)}, listed through S3"]
