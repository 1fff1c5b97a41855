"""Administrative calls under the lease of a cluster."""

from typing import Any, cast

from executor.client.cluster_admin import ClusterAdmin, ClusterReads
from executor.journal.lease import Lease
from model.errors import ExecutionStopped, RightsMissing


def leased(admin: ClusterAdmin, lease: Lease) -> ClusterAdmin:
    """Return the admin, changing nothing unless the lease outlives the call.

    Calls that change the cluster raise WriterBarred otherwise. Reads need no lease, but
    renew it when due, so that it lasts as long as its holder lives.
    """
    return cast("ClusterAdmin", _LeasedAdmin(admin, lease))


class _LeasedAdmin:
    def __init__(self, admin: ClusterAdmin, lease: Lease) -> None:
        self._admin = admin
        self._lease = lease

    def close(self) -> None:
        self._admin.close()

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            asked = getattr(self._admin, name)
            if name in vars(ClusterReads):
                self._lease.keep()
                return asked(*args, **options)
            self._lease.need()
            try:
                return asked(*args, **options)
            except (RightsMissing, ExecutionStopped):
                raise
            except BaseException:
                # A call that was interrupted got no answer, either.
                self._lease.unanswered()
                raise

        return call
