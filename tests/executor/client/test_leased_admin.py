"""No call that changes something gets past the lease."""

import inspect
from typing import Any

import pytest

from clients.s3 import Bucket
from executor.client.cluster_admin import ClusterAdmin
from executor.client.leased_admin import leased
from executor.journal.lease import Lease
from model.errors import WriterBarred
from tests.support.executor.fake_platform import FakeTime
from tests.support.executor.s3_server import s3_settings

CHANGES = ("reassign", "elect", "alter", "append", "subtract", "delete")
CALLS = [
    (name, len(inspect.signature(call).parameters) - 1)
    for name, call in inspect.getmembers(ClusterAdmin, inspect.isfunction)
    if not name.startswith("_")
]


class Recorder:
    """Notes every call."""

    def __init__(self) -> None:
        self.called: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self.called.append(name)


@pytest.mark.parametrize(("name", "arguments"), CALLS)
def test_only_reads_pass_without_a_lease(name: str, arguments: int) -> None:
    admin: Any = Recorder()
    bucket = Bucket(s3_settings("http://127.0.0.1:1"))
    lease = Lease(bucket, FakeTime().timing, call_s=10.0, holder="a")
    call = getattr(leased(admin, lease), name)
    if name.startswith(CHANGES) and name != "reassignments":
        with pytest.raises(WriterBarred):
            call(*[()] * arguments)
        assert admin.called == []
    else:
        call(*[()] * arguments)
        assert admin.called == [name]
