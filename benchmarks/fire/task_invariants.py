"""What must hold of tasks, whatever fails: read as JSON, from the bucket or else from the disk."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from benchmarks.fire.invariants import Invariants
from model.ids import BrokerId

_NEXT: Final[Mapping[str, str]] = {
    "requested": "planned verified failed cancelled",
    "planned": "planned approved failed cancelled",
    "approved": "moving failed cancelled",
    "moving": "moving planned verified failed cancelled",
    "failed": "planned approved moving verified failed cancelled",
    "verified": "done",
    "done": "",
    "cancelled": "",
}
"""The phases that may follow each one."""
_ADVANCE: Final = "task phases only advance or are cancelled"
_LOST: Final = "no acknowledged task lost"
_READABLE: Final = "a task is readable after any crash"

Document = Mapping[str, Any]


@dataclass(slots=True, kw_only=True)
class TaskInvariants:
    """The invariants of the tasks of one world, and what they have seen of them."""

    invariants: Invariants
    place: Callable[[str], bytes | None]
    """The bytes of a task where the truth about it lies; None without any."""
    empties: BrokerId
    """The broker that tasks empty."""
    acknowledged: dict[str, Document] = field(default_factory=dict)
    """The newest state of each task that some process was told of."""
    continued: int = 0
    """Processes that worked on a task of an earlier one."""
    asked: int = 0
    """Plans that were left without approval at first."""

    def acknowledge(self, task_id: str, document: Document) -> None:
        """Note that a process was told that a task is in this state."""
        before = self.acknowledged.get(task_id)
        if before is None or _continues(document, before):
            self.acknowledged[task_id] = document

    def written(self, before: bytes | None, after: bytes) -> None:
        """Check a new state of a task, as it replaces the one before."""
        new, old = _document(after), _document(before)
        if new is None:
            self.invariants.broken(_READABLE, "a state that cannot be read is written")
            return
        phases, known = _phases(new), _phases(old) if old is not None else []
        words = f"{new['task_id']}: {' '.join(known)} -> {' '.join(phases)}"
        holds = old is None or _continues(new, old)
        for first, then in pairwise(phases):
            holds = holds and then in _NEXT[first].split()
        self.invariants.check(holds, _ADVANCE, words)
        if "verified" in phases[len(known) :]:
            self._emptied(new["task_id"])

    def kept(self, folders: Mapping[str, Path]) -> None:
        """Check that every file can be read, and that nothing acknowledged was lost.

        folders: of the tasks of each host, none of whose processes is writing.
        """
        for host, folder in folders.items():
            for path in sorted(folder.glob("*.json")):
                words = f"{path.name} of {host}"
                self.invariants.check(_document(path.read_bytes()) is not None, _READABLE, words)
        for task_id, known in self.acknowledged.items():
            now = _document(self.place(task_id))
            holds = now is not None and _continues(now, known)
            phases = "nothing" if now is None else " ".join(_phases(now))
            words = f"{task_id} was {' '.join(_phases(known))} and is {phases}"
            self.invariants.check(holds, _LOST, words)

    def held(self, host: str, holder: str, task_id: str) -> None:
        """Check that whoever works on a task changes it within its lease."""
        detail = f"{host} changes {task_id} while {holder or 'nobody'} holds its lease"
        self.invariants.check(host == holder, "never two writers within one lease", detail)

    def at_rest(self, task_id: str, phase: str, note: str, marks: Mapping[BrokerId, str]) -> None:
        """Check the newest task once the world is at rest; marks: their tasks by broker."""
        self.invariants.check(
            phase in ("done", "cancelled") or (phase == "failed" and bool(note)),
            "a task ends done, cancelled or with a reason",
            f"{task_id} is {phase}",
        )
        holder = marks.get(self.empties, "")
        # Of two tasks that two hosts have requested, either may have set it.
        holds = bool(holder) if phase == "done" else True
        detail = f"{task_id} is done, and broker {self.empties} has no mark"
        self.invariants.check(holds, "an emptied broker stays marked", detail)

    def _emptied(self, task_id: str) -> None:
        world = self.invariants
        if world.is_excused:
            return
        held = [
            str(p.id)
            for p in world.cluster.partitions.values()
            if self.empties in (*p.replicas, *p.target) and p.id not in world.stolen
        ]
        detail = f"{task_id} is verified, and broker {self.empties} has {', '.join(held)}"
        world.check(not held, "a task ends as it says", detail)


def _document(data: bytes | None) -> Document | None:
    """A state whose checksum fits; None without one."""
    try:
        found: dict[str, Any] = json.loads(data or b"")
    except ValueError:
        return None
    rest = {k: v for k, v in found.items() if k != "checksum"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    fits = sha256(text.encode() + b"\n").hexdigest() == found.get("checksum")
    return found if fits else None


def _phases(document: Document) -> list[str]:
    return [change["phase"] for change in document["phases"]]


def _continues(new: Document, old: Document) -> bool:
    """Whether a state keeps the phases and approvals of an earlier one."""
    approved = [p["plan_hash"] for p in old["plans"] if p["approved_at_ms"] is not None]
    kept = {p["plan_hash"] for p in new["plans"] if p["approved_at_ms"] is not None}
    before = old["phases"]
    return bool(new["phases"][: len(before)] == before) and {*approved} <= kept
