"""Requests for several partitions, made smaller where they are too large."""

from collections.abc import Mapping, Sequence

from executor.client.cluster_admin import Admin
from executor.client.responses import Answer
from model.ids import BrokerId, PartitionId


def reassign(
    admin: Admin, targets: Mapping[PartitionId, Sequence[BrokerId] | None]
) -> dict[PartitionId, Answer]:
    """As `Admin.reassign`, in halves where POLICY_VIOLATION answers for all of them.

    A controller refuses a request of too many records so
    (`QuorumController.MAX_RECORDS_PER_USER_OP`), and a configured policy may, too:
    what is refused alone is told as it is.
    """
    answers = admin.reassign(targets)
    if len(targets) < 2 or not all(answer.by_policy for answer in answers.values()):
        return answers
    wanted = sorted(targets.items())
    half = len(wanted) // 2
    return reassign(admin, dict(wanted[:half])) | reassign(admin, dict(wanted[half:]))
