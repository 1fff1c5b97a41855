"""No call that changes something gets past the lease."""

import inspect
from typing import Any

import pytest

from clients.s3 import Bucket
from executor.client.cluster_admin import ClusterAdmin
from executor.client.leased_admin import leased
from executor.journal.lease import Lease
from model.errors import ClusterUnreachable, ExecutionStopped, RightsMissing, WriterBarred
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


@pytest.mark.parametrize(("name", "arguments"), CALLS)
@pytest.mark.parametrize(
    ("error", "answered"),
    [
        (ClusterUnreachable("no broker answers"), False),
        (KeyboardInterrupt(), False),
        (RightsMissing("refused"), True),
        (ExecutionStopped("refused"), True),
    ],
    ids=lambda of: type(of).__name__,
)
def test_a_change_without_an_answer_keeps_the_lease(
    name: str, arguments: int, error: BaseException, answered: bool
) -> None:
    noted: list[str] = []

    class Silent:
        def __getattr__(self, _name: str) -> Any:
            def call(*_: Any) -> None:
                raise error

            return call

    class Noting(Lease):
        def need(self) -> None:
            """It is held."""

        def unanswered(self) -> None:
            noted.append(name)

    bucket = Bucket(s3_settings("http://127.0.0.1:1"))
    lease = Noting(bucket, FakeTime().timing, call_s=10.0, holder="a")
    silent: Any = Silent()
    with pytest.raises(type(error)):
        getattr(leased(silent, lease), name)(*[()] * arguments)
    is_change = name.startswith(CHANGES) and name != "reassignments"
    assert noted == ([name] if is_change and not answered else [])
