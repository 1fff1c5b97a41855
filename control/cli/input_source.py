"""Where a planning command gets its cluster and its goals from."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from control import compose
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
from model.goals.topic_placement import (
    placement_warnings,
    with_topic_placements,
)
from model.plan.unplaceable import (
    placeless_warnings,
    with_placeless_deferred,
)
from model.plan.warnings import (
    goal_warning,
    rack_warning,
    racks_unknown,
)
from model.snapshot.capacities import (
    Capacities,
    capacity_notes,
    with_capacities,
)
from model.snapshot.file import read_snapshot
from model.snapshot.snapshot import Snapshot, StorageKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The files that stand for a live cluster; without any, the cluster itself."""

    snapshot: Path | None = None
    """A recorded snapshot."""
    describe: Path | None = None
    """Output of `kafka-topics --describe`."""
    loads: Path | None = None
    """CSV of loads; only with `describe`."""
    brokers: Path | None = None
    """CSV or JSON of brokers; only with `describe`."""
    storage: str | None = None
    """Storage kind of every topic; only with `describe`."""
    capacity: Path | None = None
    """Cruise Control's capacity file, over what the cluster tells itself."""
    no_racks: bool = False
    """Consent to plan without racks; switches the rack rule off."""
    placement: tuple[str, ...] = ()
    """Files of placement constraints, as `read_placement` takes them."""

    def check(self, bootstrap_server: str | None, command_config: Path | None) -> None:
        """Refuse flags that contradict each other.

        Raises
        ------
        ConfigError
            Two clusters are named, or a file goes with one that is not named.
        """
        named = {
            "--snapshot": self.snapshot,
            "--from": self.describe,
            "--bootstrap-server": bootstrap_server,
        }
        given = [flag for flag, value in named.items() if value is not None]
        if len(given) > 1:
            raise ConfigError(
                f"{' and '.join(given)} each name a cluster; name one of them"
            )
        if command_config and (files := set(given) - {"--bootstrap-server"}):
            raise ConfigError(
                f"--command-config is for a live cluster, and {min(files)} names one "
                "in a file; leave one of them out"
            )
        beside = {
            "--loads": self.loads,
            "--brokers": self.brokers,
            "--storage": self.storage,
        }
        alone = [flag for flag, value in beside.items() if value is not None]
        if alone and self.describe is None:
            raise ConfigError(
                f"{alone[0]} goes with --from DESCRIBE, the output of "
                "kafka-topics --describe; name that too"
            )

    def read(self, settings: Settings) -> Snapshot:
        """The cluster's state; what is to be said of capacities goes to stderr.

        Raises
        ------
        ConfigError
            A file cannot be used, or no cluster is named.
        """
        given = capacities_of(settings, self.capacity)
        recorded = self._recorded()
        if recorded is None:
            snapshot = _live(settings, given)
        else:
            snapshot = with_capacities(recorded, given) if given else recorded
        for words in capacity_notes(snapshot, given):
            sys.stderr.write(f"plimsoll: {words}\n")
        return snapshot

    @property
    def is_live(self) -> bool:
        """Whether it is the cluster itself, not files."""
        return self.snapshot is None and self.describe is None

    def _recorded(self) -> Snapshot | None:
        if self.snapshot is not None:
            return read_snapshot(self.snapshot)
        if self.describe is None:
            return None
        return read_cluster(
            ClusterFiles(
                describe=self.describe,
                loads=self.loads,
                brokers=self.brokers,
                storage=_storage(self.storage),
            )
        )


def _storage(name: str | None) -> StorageKind | None:
    kinds = [kind.value for kind in StorageKind]
    if name is not None and name not in kinds:
        raise ConfigError(f"--storage: unknown kind {name!r}{nearest(name, kinds)}")
    return None if name is None else StorageKind(name)


def _live(settings: Settings, given: Capacities | None) -> Snapshot:
    with compose.observer(settings, capacities=given) as collector:
        snapshot = collector.wait()
    read = compose.recent_moves(settings)
    return with_recent_moves(snapshot, settings.goals, read)


def goals_of(settings: Settings, file: Path | None, origin: Origin) -> Goals:
    """The goals of a file, those of the settings where none is named.

    With `--no-racks` their rack rule is off; rules of `--placement` come before theirs.

    Raises
    ------
    ConfigError
        The file cannot be used.
    """
    goals = settings.goals if file is None else read_goals(file)
    if origin.placement:
        rules = tuple(map(read_placement, origin.placement))
        goals = goals.model_copy(update={"placements": (*rules, *goals.placements)})
    if not origin.no_racks:
        return goals
    return goals.model_copy(update={"rack_rule": RackRule.OFF})


def with_placements(goals: Goals, snapshot: Snapshot) -> Goals:
    """The goals, and after their placements those of the topics' configs.

    Configs that cannot be used and rules without a topic are named on stderr.
    """
    names = [topic.name for topic in snapshot.header.topics]
    warn_of_placements(goals.placements, names, "matches no topic")
    for words in placement_warnings(goals, snapshot):
        sys.stderr.write(f"plimsoll: warning: {words}\n")
    return with_topic_placements(goals, snapshot)


def warn_of_placements(
    rules: Iterable[PlacementRule], topics: Sequence[str], words: str
) -> None:
    """Name placement rules that match none of these topics on stderr."""
    # It loads the solver, which takes a second.
    from solver.infeasible.messages import names_text

    for rule in rules:
        if not any(map(rule.topics.match, topics)):
            told = f"the placement of {names_text(rule.topics)} {words}"
            sys.stderr.write(f"plimsoll: warning: {told}\n")


def warn_of_ignored(snapshot: Snapshot, goals: Goals) -> None:
    """Name the goals that are ignored, and why, on stderr."""
    from solver.problem.problem import compile_problem
    from solver.report.build_plan import ignored_goals

    for goal, mean in ignored_goals(compile_problem(snapshot, goals)):
        words = goal_warning(snapshot, goal, mean)
        sys.stderr.write(f"plimsoll: warning: {words}\n")


def plannable(goals: Goals, snapshot: Snapshot) -> Goals:
    """`with_placements`; partitions that cannot leave a dead broker are deferred.

    They are named on stderr.
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
    """Warn on stderr where racks are unknown; refuse to export a reassignment then.

    reassignment: the file or folder that is to hold Kafka's reassignment JSON, or what
        is to be printed of it.
    most_replicas: as of `racks_unknown`.

    Raises
    ------
    GuardrailRefused
        A reassignment would be written that no rack rule has checked.
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
