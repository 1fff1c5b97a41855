"""`plimsoll simulate`: what policies of `run --auto` would do over days, in minutes."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from control.cli.console import ended_like_ctrl_c
from control.cli.exit_codes import Exit
from control.cli.options import Output, cluster_file, output_file, parsed
from control.cli.output import Form
from model.errors import ConfigError
from model.units import count_text, span_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from control.cli.output_types import SimulateAnswer
    from control.settings.settings import Settings
    from control.simulation.policy_trial import Trial, TrialPolicy
    from control.simulation.trials import Passed
    from lab.time_lapse.varying_loads import VaryingLoads
    from model.snapshot.snapshot import Snapshot

BEGIN_MS: Final = 1_767_571_200_000
"""Begin of simulations of synthetic clusters: Monday 2026-01-05, 00:00 UTC."""
DAY_MS: Final = 86_400_000
USUAL: Final = ("conservative", "eager")
USUAL_DAYS: Final = 7
USUAL_BROKERS: Final = 6
USUAL_PARTITIONS: Final = 300
USUAL_GROWTH: Final = 0.02
USUAL_BURSTS: Final = 0.5
MOST_DAYS: Final = 366
LEAST_STEP_S: Final = 15.0
MOST_STEP_S: Final = 3600.0
SHAPES: Final = "step, ramp, crowds, sawtooth, swap, follow or crush"


def simulate(
    *,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[LABEL=]NAME|FILE",
            help="Limits of run --auto by their name, or a configuration file with its limits, "
            "goals, triggers, schedule and stop rules. Repeatable.  "
            "[default: conservative and eager]",
        ),
    ] = None,
    days: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MOST_DAYS,
            help="Days to simulate.  [default: 7, or as many as the loads cover]",
        ),
    ] = None,
    snapshot: Annotated[
        Path | None, cluster_file("--snapshot", help="Start from this recorded snapshot.")
    ] = None,
    brokers: Annotated[
        int | None,
        typer.Option(min=2, max=1_000, help="Brokers of a synthetic cluster.  [default: 6]"),
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option(min=1, max=200_000, help="Partitions of a synthetic cluster.  [default: 300]"),
    ] = None,
    load_csv: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Rates of topics over time: columns time, topic, rate."),
    ] = None,
    history: Annotated[
        bool,
        typer.Option(
            "--history",
            help="Replay the loads that the history has of the snapshot's cluster, by the hour.",
        ),
    ] = False,
    steady: Annotated[
        bool, typer.Option("--steady", help="Leave out days, weeks, growth and bursts.")
    ] = False,
    growth: Annotated[
        float | None,
        typer.Option(min=-0.5, max=0.5, help="Mean growth per week, as a share.  [default: 0.02]"),
    ] = None,
    bursts: Annotated[
        float | None, typer.Option(min=0, max=7, help="Bursts of a topic per week.  [default: 0.5]")
    ] = None,
    shape: Annotated[
        list[str] | None,
        typer.Option(metavar="SHAPE", help=f"Add a shape of loads: {SHAPES}. Repeatable."),
    ] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND:BROKER@START+LENGTH",
            help="Let a broker be dead, flapping or slow, as in dead:3@2d+6h. Repeatable.",
        ),
    ] = None,
    step: Annotated[
        float,
        typer.Option(
            help="Time for which loads are constant: 15s to 1h.",
            parser=parsed(span_of),
            metavar="TIME",
        ),
    ] = "5m",  # type: ignore[assignment]  # the parser reads defaults, too
    search_budget: Annotated[
        float,
        typer.Option(
            min=0.001,
            max=1000,
            metavar="UNITS",
            help="Search budget of each plan, in units of about a second.",
        ),
    ] = 0.1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of cluster and loads.")] = 1,
    svg: Annotated[Path | None, output_file(help="Draw the policies here (.svg).")] = None,
    local_settings: "Settings",
    output: Output = Form.TABLE,
) -> int:
    """Simulate policies on the same cluster and loads; print and draw what they did."""
    from control.cli.output_files import SVG, check_file
    from control.render.simulation_svg import simulation_svg
    from control.render.simulation_text import simulation_text
    from control.render.text import answer_text
    from control.simulation.policy_trial import Trial
    from lab.time_lapse.broker_faults import BrokerFault
    from lab.time_lapse.load_shapes import shapes_of
    from lab.time_lapse.time_lapse_cluster import Course
    from model.files import replace_file
    from model.goals.goals import SolveLimits

    check_file(svg, SVG)
    if not LEAST_STEP_S <= step <= MOST_STEP_S:
        raise ConfigError(f"--step is {step:g} s; give 15s to 1h")
    if history and snapshot is None:
        raise ConfigError(
            "--history needs the cluster whose loads it replays; give a snapshot of it by "
            "--snapshot FILE"
        )
    size = {"--brokers": brokers, "--partitions": partitions}
    _check_one("the cluster is", {"--snapshot": snapshot}, size)
    given = {"--history": history or None, "--load-csv": load_csv, "--steady": steady or None}
    _check_one("the loads are", given, {"--growth": growth, "--bursts": bursts})
    start = _start(
        snapshot,
        brokers=USUAL_BROKERS if brokers is None else brokers,
        partitions=USUAL_PARTITIONS if partitions is None else partitions,
        seed=seed,
    )
    policies = policies_of(policy or USUAL, local_settings, start.header.taken_at_ms)
    if load_csv is not None:
        start, loads, days = _tabled(load_csv, start, days)
    elif history:
        start, loads, days = past(local_settings, start, days)
    else:
        loads = varying(
            start,
            steady=steady,
            growth=USUAL_GROWTH if growth is None else growth,
            bursts=USUAL_BURSTS if bursts is None else bursts,
            seed=seed,
        )
    days = days or USUAL_DAYS
    length_s = days * DAY_MS / 1000
    faults = tuple(map(BrokerFault.parse, fault or ()))
    for each in faults:
        if each.at_s >= length_s:
            raise ConfigError(
                f"--fault {each.kind}:{each.broker} begins after the "
                f"{count_text(days, 'simulated day')}; give more --days, or an earlier start"
            )
    trial = Trial(
        course=Course(
            start=start,
            loads=loads,
            shapes=shapes_of(shape or (), start, seed=seed, length_s=length_s),
            faults=faults,
            step_s=step,
        ),
        length_s=length_s,
        solve=SolveLimits(work=search_budget),
    )
    with ended_like_ctrl_c():
        answer = tried(local_settings, trial, policies, seed=seed, passed=_progress)
    if svg is not None:
        try:
            replace_file(svg, simulation_svg(answer).encode(), shared=True)
        except OSError as exc:
            raise ConfigError(f"cannot write {svg}: {exc.strerror}") from exc
    sys.stdout.write(answer_text(answer, simulation_text, output))
    return Exit.DONE


def tried(
    settings: "Settings",
    trial: "Trial",
    policies: "Sequence[TrialPolicy]",
    *,
    seed: int,
    passed: "Passed",
) -> "SimulateAnswer":
    """Simulate the policies. Raises PlimsollError as `try_policy` does."""
    from control import compose
    from control.cli.output_types import SimulateAnswer

    start = trial.course.start
    with compose.trials(settings, passed) as try_all:
        outcomes = tuple(try_all(trial, policies))
    return SimulateAnswer.of(
        cluster_id=start.header.cluster_id,
        brokers=len(start.header.brokers),
        partitions=len(start),
        begin_ms=start.header.taken_at_ms,
        days=round(trial.length_s * 1000 / DAY_MS),
        seed=seed,
        policies=outcomes,
    )


def _start(path: Path | None, *, brokers: int, partitions: int, seed: int) -> "Snapshot":
    """The cluster as it is at first, from midnight UTC on."""
    from control.cli.commands.generate import shape_of
    from lab.time_lapse.varying_loads import synthetic_start
    from model.snapshot.file import read_snapshot

    if path is None:
        shape = shape_of(brokers=brokers, racks=None, rf=None, partitions=partitions)
        return synthetic_start(shape, BEGIN_MS, seed)
    found = read_snapshot(path)
    if not len(found):
        raise ConfigError(f"{path} has no partitions, so that there is nothing to balance")
    return from_midnight(found)


def from_midnight(found: "Snapshot") -> "Snapshot":
    """A cluster at the last midnight, UTC."""
    from model.snapshot.snapshot import Snapshot

    midnight = found.header.taken_at_ms // DAY_MS * DAY_MS
    # Moves made before are no part of the simulation.
    update = {"taken_at_ms": midnight, "recent_moves": ()}
    return Snapshot(found.header.model_copy(update=update), found.partitions)


def varying(
    start: "Snapshot", *, steady: bool, growth: float, bursts: float, seed: int
) -> "VaryingLoads":
    """Loads that begin with those of the snapshot; steady: and stay so."""
    from lab.synthetic.load_curves import LoadCurves, Rhythm
    from lab.time_lapse.varying_loads import CurvedLoads, SteadyLoads, rate_columns

    if steady:
        return SteadyLoads(start.partitions.loads)
    rhythm = Rhythm(growth=growth, bursts=bursts)
    columns = start.partitions
    curves = LoadCurves(columns.topic, rhythm, seed=seed, end_ms=start.header.taken_at_ms)
    return CurvedLoads(columns.loads, rate_columns(start), curves)


def _tabled(
    path: Path, start: "Snapshot", days: int | None
) -> tuple["Snapshot", "VaryingLoads", int]:
    """The cluster at the first time of a table of rates, the loads, and the days to simulate."""
    from lab.time_lapse.load_table import read_load_table
    from model.snapshot.snapshot import Snapshot

    loads = read_load_table(path, start)
    first, last = int(loads.times_ms[0]), int(loads.times_ms[-1])
    covered = max(1, -(-(last - first) // DAY_MS))
    if days is not None and days > covered:
        raise ConfigError(
            f"{path} covers {count_text(covered, 'day')}, fewer than --days {days}; "
            "add later times, or lower --days"
        )
    if days is None and covered > MOST_DAYS:
        raise ConfigError(
            f"{path} covers {count_text(covered, 'day')}, more than the {MOST_DAYS} that can be "
            f"simulated; give --days {MOST_DAYS} for the first year of them, or shorten the file"
        )
    header = start.header.model_copy(update={"taken_at_ms": first})
    return Snapshot(header, start.partitions), loads, days or covered


def _check_one(what: str, sources: "Mapping[str, object]", details: "Mapping[str, object]") -> None:
    """Raise ConfigError where two options say what something is; None: not given.

    sources: each says all of it; details: together, they do.
    """
    given = [name for name, value in sources.items() if value is not None]
    if given:
        given += [name for name, value in details.items() if value is not None]
    if len(given) > 1:
        raise ConfigError(f"{given[0]} and {given[1]} both say what {what}; leave one out")


def past(
    settings: "Settings", start: "Snapshot", days: int | None
) -> tuple["Snapshot", "VaryingLoads", int]:
    """The cluster at the first day of its history, the loads since then, and the days."""
    from control import compose
    from lab.time_lapse.hourly_loads import hourly_loads
    from model.snapshot.snapshot import Snapshot

    found = compose.past_loads(settings, start.header.cluster_id, days)
    count = len(found.days)
    loads = hourly_loads(start, found.hours, found.begin_ms, 24 * count)
    header = start.header.model_copy(update={"taken_at_ms": found.begin_ms})
    return Snapshot(header, start.partitions), loads, count


def policies_of(
    given: "Sequence[str]", settings: "Settings", now_ms: int, *, names_only: bool = False
) -> tuple["TrialPolicy", ...]:
    """The policies; ConfigError where one is not known, can never act, or comes twice.

    names_only: whether no file is read.
    """
    from control.settings.auto_policy import AutoPolicy, policy_faults

    found = [_policy(text, settings, names_only=names_only) for text in given]
    for text, policy in zip(given, found, strict=True):
        if sum(other.name == policy.name for other in found) > 1:
            raise ConfigError(f"two policies are named {policy.name!r}; {_renamed(text)}")
        bounds = AutoPolicy(
            limits=policy.limits,
            triggers=policy.triggers,
            dead_broker_after_s=policy.dead_broker_after_s,
            stop_rules=policy.stop_rules,
            schedule=policy.schedule,
            goals=policy.goals,
            effort=policy.effort,
        )
        faults = policy_faults(bounds, now_ms / 1000)
        if faults:
            raise ConfigError(f"policy {policy.name}: {faults[0]}")
    return tuple(found)


def _renamed(text: str) -> str:
    """How to give a policy another name."""
    from control.settings.settings import load

    what = text.rpartition("=")[2]
    if _is_file(what) and len(load({}, config=Path(what)).limits) > 1:
        return f"{what} has several limits, so that their names are the labels; rename them there"
    return f"give one another label, as in --policy other={what}"


def _is_file(what: str) -> bool:
    path = Path(what)
    return path.suffix == ".toml" or path.exists()


def _policy(text: str, settings: "Settings", *, names_only: bool) -> "TrialPolicy":
    """A policy `[LABEL=]NAME` of the settings, or `[LABEL=]FILE`."""
    from control.settings.auto_limits import NAMED, limits_named, unattended
    from control.settings.settings import load
    from control.simulation.policy_trial import TrialPolicy
    from lab.time_lapse.time_lapse_executor import COPY_RATE

    label, _, what = text.rpartition("=")
    if not what:
        raise ConfigError(f"--policy {text}: name limits, or a configuration file")
    known = {*NAMED, *settings.limits}
    if not names_only and _is_file(what):
        settings = load({}, config=Path(what))
        name = label if label in settings.limits else next(iter(settings.limits), "")
        if not name and label not in NAMED:
            raise ConfigError(
                f"--policy {text}: {what} has no [limits.NAME]; add one, or give built-in limits, "
                f"as in --policy conservative={what}"
            )
        if len(settings.limits) > 1 and name != label:
            there = sorted(settings.limits)
            raise ConfigError(
                f"--policy {text}: {what} has the limits {', '.join(there)}; name one of them, as "
                f"in --policy {there[0]}={what}"
            )
        name = name or label
    else:
        name = what
    if label != name and label in known | settings.limits.keys():
        raise ConfigError(
            f"--policy {text}: {label} is the name of other limits than {name}; give another "
            f"label, as in --policy my-{label}={what}"
        )
    limits = limits_named(name, settings.limits)
    throttle = settings.throttle
    return TrialPolicy(
        name=label or name,
        limits=limits,
        goals=unattended(settings.goals),
        triggers=settings.triggers,
        schedule=settings.schedule,
        effort=settings.solve.effort if limits.effort is None else limits.effort,
        dead_broker_after_s=settings.dead_broker_after,
        copy_rate=float(throttle) if isinstance(throttle, int) else COPY_RATE,
        stop_rules=settings.stop_rules,
    )


def _progress(name: str, share: float) -> None:
    """Show on a terminal how far the simulation is."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{name}: {share:.0%} ")
        sys.stderr.flush()
