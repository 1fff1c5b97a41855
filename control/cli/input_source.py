"""The cluster and the goals of a planning command: live, or read from files."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from control import compose
from control.cli.invocation import Origin
from control.planning.validate import with_recent_moves
from control.settings.capacity_table import capacities_of
from control.settings.settings import Settings
from model.errors import ConfigError, GuardrailRefused
from model.exchange.confluent_placement import read_placement
from model.exchange.goals_file import read_goals
from model.exchange.offline_snapshot import ClusterFiles, read_cluster
from model.exchange.text_files import nearest
from model.goals.goals import Goals, RackRule
from model.goals.rack_placement import PlacementRule
from model.goals.topic_placement import placement_warnings, with_topic_placements
from model.plan.unplaceable import placeless_warnings, with_placeless_deferred
from model.plan.warnings import goal_warning, rack_warning, racks_unknown
from model.snapshot.capacities import capacity_notes, with_capacities
from model.snapshot.file import read_snapshot
from model.snapshot.replication import Replication
from model.snapshot.snapshot import Snapshot, StorageKind


def snapshot_of(settings: Settings, origin: Origin, *, early: bool = False) -> Snapshot:
    """Read the cluster's state; notes on capacities go to stderr, as with `observed`."""
    return observed(settings, origin, early=early)[0]


def observed(
    settings: Settings, origin: Origin, *, early: bool = False
) -> tuple[Snapshot, Replication | None]:
    """Read the cluster's state, and what its metadata say of in-sync replicas, if it was asked.

    Notes on capacities go to stderr. early: whether a live cluster is measured without Spark
    where that is possible, over a window.
    Raises ConfigError where a file cannot be used, or no cluster is named.
    """
    given = capacities_of(settings.capacities, origin.capacity or settings.capacity_file)
    replication = None
    if origin.snapshot is not None:
        snapshot = read_snapshot(origin.snapshot)
    elif origin.describe is not None:
        files = ClusterFiles(
            describe=origin.describe,
            loads=origin.loads,
            brokers=origin.brokers,
            storage=_storage(origin.storage),
        )
        snapshot = read_cluster(files)
    else:
        with compose.observer(settings, capacities=given, early=early) as collector:
            snapshot, replication = collector.wait(), collector.replication()
        snapshot = with_recent_moves(snapshot, settings.goals, compose.journal_dir(settings))
    if given and not origin.is_live:
        snapshot = with_capacities(snapshot, given)
    for words in capacity_notes(snapshot, given):
        sys.stderr.write(f"plimsoll: {words}\n")
    return snapshot, replication


def _storage(name: str | None) -> StorageKind | None:
    kinds = [kind.value for kind in StorageKind]
    if name is not None and name not in kinds:
        raise ConfigError(f"--storage: unknown kind {name!r}{nearest(name, kinds)}")
    return None if name is None else StorageKind(name)


def goals_of(settings: Settings, file: Path | None, origin: Origin) -> Goals:
    """The goals of a file; by default those of the settings.

    `--no-racks` switches their rack rule off; rules of `--placement` precede theirs.

    Raises ConfigError where the file cannot be used.
    """
    goals = settings.goals if file is None else read_goals(file)
    if origin.placement:
        rules = tuple(map(read_placement, origin.placement))
        goals = goals.model_copy(update={"placements": (*rules, *goals.placements)})
    if not origin.no_racks:
        return goals
    return goals.model_copy(update={"rack_rule": RackRule.OFF})


def with_placements(goals: Goals, snapshot: Snapshot) -> Goals:
    """The goals, their placements followed by those of the topics' configs.

    Warns on stderr of invalid configs and of rules that match no topic.
    """
    names = [topic.name for topic in snapshot.header.topics]
    warn_of_placements(goals.placements, names, "matches no topic")
    for words in placement_warnings(goals, snapshot):
        sys.stderr.write(f"plimsoll: warning: {words}\n")
    return with_topic_placements(goals, snapshot)


def warn_of_placements(rules: Iterable[PlacementRule], topics: Sequence[str], words: str) -> None:
    """Warn on stderr of placement rules that match none of these topics."""
    # The solver takes a second to load.
    from solver.infeasible.messages import names_text

    for rule in rules:
        if not any(map(rule.topics.match, topics)):
            rule_text = f"the placement of {names_text(rule.topics)} {words}"
            sys.stderr.write(f"plimsoll: warning: {rule_text}\n")


def warn_of_ignored(snapshot: Snapshot, goals: Goals) -> None:
    """Warn on stderr of ignored goals, with the reason."""
    from solver.problem.problem import compile_problem
    from solver.report.build_plan import ignored_goals

    for goal, mean in ignored_goals(compile_problem(snapshot, goals)):
        words = goal_warning(snapshot, goal, mean)
        sys.stderr.write(f"plimsoll: warning: {words}\n")


def plannable(goals: Goals, snapshot: Snapshot) -> Goals:
    """`with_placements`, with partitions deferred that cannot leave a dead broker.

    Warns of those on stderr.
    """
    found = with_placeless_deferred(with_placements(goals, snapshot), snapshot)
    for words in placeless_warnings(snapshot, found):
        sys.stderr.write(f"plimsoll: warning: {words}\n")
    return found


def check_racks(
    snapshot: Snapshot,
    goals: Goals,
    reassignment: Path | str | None,
    *,
    most_replicas: int | None = None,
) -> None:
    """Warn on stderr of unknown racks, and refuse to export a reassignment then.

    reassignment: the file or folder for Kafka reassignment JSON, or a noun phrase for
        what is printed. most_replicas: as in `racks_unknown`.

    Raises GuardrailRefused where no rack rule would have checked the exported reassignment.
    """
    missing = racks_unknown(snapshot, goals, most_replicas=most_replicas)
    if not missing:
        return
    words = rack_warning(snapshot, missing)
    if reassignment is not None:
        raise GuardrailRefused(
            f"{reassignment} was not written, because nothing else would check the "
            f"racks of a reassignment: {words}"
        )
    sys.stderr.write(f"plimsoll: warning: {words}\n")
