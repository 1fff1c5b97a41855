"""Readers of the state folder, of objects that hosts share, and of what other services answer."""

import base64
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl

from clients.java_stores import read_store
from clients.kubernetes_leases import ANNOTATION, KubernetesLeases, KubernetesSettings
from clients.s3 import Stored
from clients.tokens import token_of
from collector.reports.http import MetricsClient
from collector.reports.prometheus import PrometheusServer, ServerSettings
from collector.reports.selectors import selector
from control.cruise_control.dry_runs import replication_of
from control.cruise_control.requests import ENDPOINTS, BadRequest, parsed
from control.loop import decision_file
from control.loop.decision_file import DecisionRecord, read_decisions
from control.loop.policy import Decision
from control.service import audit_log
from control.service.audit_log import AuditOutcome, AuditRecord, AuditVia, read_audit
from control.tasks.broker_marks import BrokerMark, read_marks, sealed_marks
from control.tasks.broker_task import BrokerTask, Operation
from control.tasks.sealed_files import checksum_of
from control.tasks.task_files import TaskFiles
from executor.journal.lease import LeaderNote, Lease, LeaseDocument
from executor.timing import Timing
from model.bounded import parse_json
from model.files import canonical
from model.ids import BrokerId
from model.snapshot.snapshot import BrokerState
from tests.support.model.clusters import brokers, snapshot

Read = Callable[[bytes], object]
Target = tuple[str, Read, tuple[bytes, ...]]
"""A reader's name, the reader, and its first inputs."""
_STATUSES: Final = (200, 201, 400, 401, 403, 404, 409, 500)
_LEASE: Final = LeaseDocument(
    holder="host-a",
    token="t",  # noqa: S106 - not a password
    epoch=3,
    renewals=2,
    duration_ms=1,
    expires_at_ms=2,
    leader=LeaderNote(policy="p", paused_by="eve", paused_at_ms=1),
)
_STORE: Final = base64.b64decode(
    b"MIIB7gIBAzCCAaQGCSqGSIb3DQEHAaCCAZUEggGRMIIBjTCCAYkGCSqGSIb3DQEHBqCCAXowggF2AgEAMIIBbwYJ"
    b"KoZIhvcNAQcBMF4GCSqGSIb3DQEFDTBRMDAGCSqGSIb3DQEFDDAjBBCeABSdel3LEfjJ8jDJ6hWhAgEUMAwGCCqG"
    b"SIb3DQIJBQAwHQYJYIZIAWUDBAEqBBCxZ5udLoFqZpiAhXv92FPdgIIBAHwFolWlLj79hf/T0nU30kiIk2olLDF3"
    b"Rt3xpTv9BzC2A9FV08TBPrnJedKiDKZRTiITDohgYOwRcEa1AZ2btmV04L6uHr8QL7S4LyXGUq8sCzma19ZS91E4"
    b"II5ehqButbhwUD56pKivKEaNtL91ct2sgQ4nY2SGjTx6DA3/ErgMKR0gGg1aDBYz/uje+8LEwGTqs4LYkqK0jDey"
    b"RuAJ7uQi9tPXkg7ebQbPLTw6QNhI/u8w8ChWFzeEFS98NmjDRqR5pjh9OOdhb51/iPcc9LbarIA3iteuJhmUuhoq"
    b"11T5Dn1bbCQ9tEQwbnnT48Poe7cvEsjhEczuFx0x8aBtkBUwQTAxMA0GCWCGSAFlAwQCAQUABCDCIiLGJ4IJoNi7"
    b"l+t2jye1KrBq+/5OPXlNGdES0/VqaQQIskkY9p/4cUcCAggA"
)
"""A PKCS12 store with a certificate, and the password `secret`."""


def targets(folder: Path) -> Iterator[Target]:
    """All of them; folder: of files that they read."""
    yield from _state_folder(folder)
    yield from _leases()
    yield "prometheus", _of_prometheus, _PROMETHEUS
    yield "oauth-token", lambda data: token_of(parse_json(data), 0.0, "https://o"), _TOKENS
    yield "pkcs12", lambda data: read_store(folder / "x.p12", data, "secret", None), (_STORE,)
    yield (
        "cruise-control-request",
        _of_request,
        (
            b"add_broker?brokerid=1,2&dryrun=false&reason=a%20b",
            b"rebalance?goals=DiskCapacityGoal&excluded_topics=a.*&json=true",
            b"partition_load?max_load=true&entries=7&topic=orders&partition=0-3",
            b"remove_disks?brokerid_and_logdirs=1-/a,1-/b",
            b"topic_configuration?json=true\n"
            b'{"replication_factor":{"topic_by_replication_factor":{"2":"orders"}}}',
        ),
    )


def _state_folder(folder: Path) -> Iterator[Target]:
    task = BrokerTask.requested("x", "c", Operation.ADD, (BrokerId(4),), by="ada", ms=1)
    files = TaskFiles(folder)
    task = files.store(task)
    path = files.path(task.task_id)
    yield ("task", _of_file(path, lambda: files.read(task.task_id), _sealed), (path.read_bytes(),))
    mark = BrokerMark(
        cluster_id="c",
        broker=BrokerId(4),
        state=BrokerState.DRAINING,
        at_ms=1,
        by="ada",
        reason="it is old",
    )
    marks = folder / "broker-marks.json"
    yield (
        "broker-marks",
        _of_file(marks, lambda: read_marks(folder), _sealed),
        (canonical(sealed_marks((mark,))),),
    )
    decision = DecisionRecord(
        at_ms=1,
        cluster_id="c",
        decision=Decision.HOLD,
        trigger="imbalance",
        reason="it lasts for 3 min",
        until_ms=2,
        plan_hash="0a",
    )
    line = decision.model_dump_json().encode() + b"\n"
    yield (
        "decisions",
        _of_file(folder / decision_file.FILE, lambda: read_decisions(folder, 100)),
        (line, line + line[:20] + b"\n" + line),
    )
    record = AuditRecord(
        at_ms=1,
        id="0a",
        action="approve",
        by="ada",
        user="ada",
        uid=0,
        pid=None,
        via=AuditVia.SIGNAL,
        plan_hash="",
        detail="",
        outcome=AuditOutcome.DONE,
        message="done",
    )
    line = record.model_dump_json().encode() + b"\n"
    yield (
        "audit",
        _of_file(folder / audit_log.FILE, lambda: read_audit(folder)),
        (line, line + line[:20] + b"\n" + line),
    )


def _leases() -> Iterator[Target]:
    body = _LEASE.body
    yield "lease", lambda data: _lease(_Stored(data)).holder_of("k"), (body,)
    about = {"uid": "u", "resourceVersion": "7", "annotations": {ANNOTATION: body.decode()}}
    answer = canonical({"metadata": about})
    yield "kubernetes-lease", _of_kubernetes, (b"0" + answer, b'5{"message":"not found"}')


def _lease(store: Any) -> Lease:
    return Lease(store, Timing(now_s=lambda: 0.0), call_s=1.0, holder="h")


class _Stored:
    """A store, in S3 or Kubernetes, with one object."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def where(self, key: str) -> str:
        return key

    def get(self, key: str, most: int) -> Stored | None:
        del key, most
        return Stored(self._body, "e")


class _Answering(KubernetesLeases):
    """Leases of an API server that answers each request alike."""

    def __init__(self, status: int, body: bytes) -> None:
        settings = KubernetesSettings(host="h", port=1, account=Path("/none"), namespace="n")
        super().__init__(settings)
        self._answer = status, body

    def _ask(
        self, method: str, name: str, what: str, document: Mapping[str, Any] | None = None
    ) -> tuple[int, Any]:
        del method, name, what, document
        return self.parsed(*self._answer)


def _of_kubernetes(data: bytes) -> object:
    status = _STATUSES[(data[0] if data else 0) % len(_STATUSES)]
    leases = _Answering(status, data[1:])
    return _lease(leases).holder_of("k"), leases.put_over("k", _LEASE.body, "u/1")


_PROMETHEUS: Final = (
    b'{"status":"success","warnings":["w"],"data":{"resultType":"vector","result":['
    b'{"metric":{"instance":"1","topic":"orders","partition":"0"},"value":[1.5,"7"]},'
    b'{"metric":{"instance":"b"},"value":[1,"+Inf"]}]}}',
    b'{"status":"error","error":"no"}',
)
_TOKENS: Final = (
    b'{"access_token":"a","expires_in":3600}',
    b'{"access_token":"e30.eyJleHAiOjJ9.x"}',
)


class _Page(MetricsClient):
    """A server with one page."""

    def __init__(self, body: bytes) -> None:
        # Authorities, which take 20 ms to read, are not needed.
        self._body = body

    def get(self, url: str, accept: str) -> bytes:
        del url, accept
        return self._body


def _of_prometheus(data: bytes) -> object:
    settings = ServerSettings(
        url="http://p", figures={"net_in": (selector("a"),)}, broker_label="instance"
    )
    return PrometheusServer(settings, _Page(data), lambda: 1.0).read()


_SNAPSHOT: Final = snapshot(brokers(3), [(1, 2), (2, 3)])


def _of_request(data: bytes) -> object:
    """A request of Cruise Control's clients: endpoint, query, and its body in the next line."""
    line, _, body = data.decode("utf-8", "replace").partition("\n")
    name, _, query = line.partition("?")
    endpoint = ENDPOINTS.get(name) or ENDPOINTS["topic_configuration"]
    request = parsed(endpoint, parse_qsl(query, keep_blank_values=True), f"/{name}", body)
    if endpoint.name == "topic_configuration":
        return replication_of(request, _SNAPSHOT)
    return request.values, request.url, request.brokers()


REFUSALS: Final = {
    "oauth-token": (ValueError,),
    "pkcs12": (ValueError,),
    "cruise-control-request": (BadRequest,),
}
"""Errors by which readers refuse, besides those of plimsoll."""


def _of_file(
    path: Path, read: Callable[[], object], change: Callable[[bytes], bytes] = lambda data: data
) -> Read:
    def read_file(data: bytes) -> object:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(change(data))
        return read()

    return read_file


def _sealed(data: bytes) -> bytes:
    """With a checksum that fits: otherwise every try would end there."""
    try:
        document = parse_json(data)
    except ValueError:
        return data
    if not isinstance(document, dict):
        return data
    return canonical(document | {"checksum": checksum_of(document)})
