"""Leases of Kubernetes, asked of a server of the tests' own and of a real one, over HTTPS.

`api` is either of them, `scripted` is the former alone.
"""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from clients.kubernetes_leases import KubernetesLeases, KubernetesSettings, name_of
from executor.journal.lease import Lease, LeaseDocument
from lab.local_cluster.tcp_ports import free_ports
from model.errors import (
    ArchiveUnreachable,
    ConfigError,
    GuardrailRefused,
    PlimsollError,
    RightsMissing,
    WriterBarred,
)
from tests.support.executor.fake_platform import FakeTime
from tests.support.kube_apiserver import AnyApi
from tests.support.kubernetes_api import NAMESPACE, VERBS, Answer, KubernetesApi, kubernetes_api
from tests.support.tls_certificates import Authority

KEY = "mKqW_x-1/leader.json"
MOST = 1 << 16
ROUNDS = 20
NOT_STOPPED = threading.Event()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesApi]:
    with kubernetes_api(tmp_path_factory.mktemp("kubernetes")) as found:
        yield found


@pytest.fixture
def scripted(server: KubernetesApi) -> Iterator[KubernetesApi]:
    yield server
    server.reset()


@pytest.fixture(params=["scripted", "real_api"])
def api(request: pytest.FixtureRequest) -> AnyApi:
    found: AnyApi = request.getfixturevalue(request.param)
    return found


def store(api: AnyApi, account: Path | None = None, **given: str | None) -> KubernetesLeases:
    namespace = given.get("namespace")
    account = account or api.account()
    settings = KubernetesSettings.of_pod(api.environment, account, namespace)
    return KubernetesLeases(settings, timeout_s=60.0)


def document(renewals: int = 0, *, released: bool = False, epoch: int = 1) -> bytes:
    return LeaseDocument(
        holder="plimsoll 7 on a",
        token="t",
        epoch=epoch,
        renewals=renewals,
        duration_ms=20_000,
        expires_at_ms=1_700_000_020_500,
        released=released,
    ).body


def test_a_lease_is_created_once_and_replaced_in_the_version_that_was_read(api: AnyApi) -> None:
    leases, before = store(api), api.conflicts
    assert leases.get(KEY, MOST) is None
    first = leases.put_new(KEY, document())
    assert first
    assert leases.put_new(KEY, document(1)) is None
    second = leases.put_over(KEY, document(2), first)
    assert second
    assert leases.put_over(KEY, document(3), first) is None
    found = leases.get(KEY, MOST)
    assert found is not None
    assert (found.body, found.etag) == (document(2), second)
    assert leases.keeps_conditions(KEY, document(-1))
    assert leases.get(KEY, MOST) == found
    assert api.conflicts - before == 4


def test_a_lease_that_was_removed_is_not_created_by_replacing_it(api: AnyApi) -> None:
    held, other = (lease(api, FakeTime(), name) for name in ("held", "other"))
    assert held.attempt(KEY) is None
    api.remove(name_of(KEY))
    with pytest.raises(WriterBarred, match="someone has removed it"):
        held.renew()
    assert api.leases == {}
    assert other.attempt(KEY) is None
    first = store(api).get(KEY, MOST)
    assert first is not None
    api.remove(name_of(KEY))
    other.release()
    assert api.leases == {}
    # Another one of the same name is another one.
    assert store(api).put_new(KEY, document())
    assert store(api).put_over(KEY, document(1), first.etag) is None


def test_kubectl_shows_who_holds_it(api: AnyApi) -> None:
    leases = store(api)
    etag = leases.put_new(KEY, document(epoch=3))
    assert etag
    (name,) = api.leases
    assert name == name_of(KEY)
    assert name.startswith("plimsoll-mkqw-x-1-leader-")
    assert api.leases[name]["metadata"]["labels"] == {"app.kubernetes.io/name": "plimsoll"}
    assert api.leases[name]["spec"] == {
        "holderIdentity": "plimsoll 7 on a",
        "leaseDurationSeconds": 20,
        "leaseTransitions": 3,
        "renewTime": "2023-11-14T22:13:20.500000Z",
    }
    assert leases.put_over(KEY, document(released=True), etag)
    assert "holderIdentity" not in api.leases[name]["spec"]
    assert leases.where(KEY) == f"leases/{name} in namespace {NAMESPACE}"


def test_names_differ_where_keys_do() -> None:
    keys = ["a/leader.json", "A/leader.json", "a_/leader.json", "%00/leader.json", "x" * 300]
    assert len({name_of(key) for key in keys}) == len(keys)


def test_of_writers_that_replace_one_version_a_single_one_succeeds(api: AnyApi) -> None:
    writers, account = 4, api.account()
    with ThreadPoolExecutor(writers) as pool:
        for turn in range(5):
            found = store(api, account).get(KEY, MOST)
            together = threading.Barrier(writers)

            def write(number: int, etag: str, together: threading.Barrier) -> str | None:
                leases = store(api, account)
                together.wait()
                body = document(number)
                return leases.put_over(KEY, body, etag) if etag else leases.put_new(KEY, body)

            etag = "" if found is None else found.etag
            calls = [pool.submit(write, 10 * turn + n, etag, together) for n in range(writers)]
            assert sum(call.result() is not None for call in calls) == 1


def lease(api: AnyApi, time: FakeTime, name: str) -> Lease:
    return Lease(store(api), time.timing, call_s=5.0, spare_s=15.0, holder=name)


def test_of_two_candidates_a_single_one_holds_it_in_every_round(api: AnyApi) -> None:
    time = FakeTime()
    candidates = [lease(api, time, name) for name in "ab"]
    with ThreadPoolExecutor(len(candidates)) as pool:
        for turn in range(ROUNDS):
            together = threading.Barrier(len(candidates))

            def contend(candidate: Lease, together: threading.Barrier) -> bool:
                together.wait()
                return candidate.attempt(KEY) is None

            calls = [pool.submit(contend, candidate, together) for candidate in candidates]
            holds = [call.result() for call in calls]
            assert sum(holds) == 1
            holder, other = candidates[holds.index(True)], candidates[holds.index(False)]
            if turn % 2:
                holder.release()
                continue
            # It dies, and its time ends.
            time.now_s += 20.5
            assert other.attempt(KEY) is None
            with pytest.raises(WriterBarred, match="has taken it"):
                holder.renew()
            other.release()


def test_a_frozen_holder_finds_its_lease_lost(api: AnyApi) -> None:
    time = FakeTime()
    frozen, other, third = (lease(api, time, name) for name in ("frozen", "other", "third"))
    assert frozen.attempt(KEY) is None
    holder = other.attempt(KEY)
    assert holder is not None
    assert holder.holder == "frozen"
    time.now_s += 19.0
    assert other.attempt(KEY) is not None
    assert frozen.left_s > 0
    time.now_s += 1.5
    assert other.attempt(KEY) is None
    assert frozen.left_s == 0
    with pytest.raises(WriterBarred, match="other has taken it"):
        frozen.renew()
    with pytest.raises(WriterBarred):
        frozen.need()
    frozen.release()
    other.renew()
    other.release()
    assert third.attempt(KEY) is None


def test_a_lease_that_is_renewed_is_not_taken_over(api: AnyApi) -> None:
    time = FakeTime()
    holder, other = lease(api, time, "holder"), lease(api, time, "other")
    with holder.held_at(KEY, NOT_STOPPED):
        for second in range(5, 60, 5):
            time.after.append((time.now_s + second, holder.renew))
        with pytest.raises(GuardrailRefused, match="holder is changing the cluster"):
            other.held_at(KEY, NOT_STOPPED).__enter__()


def test_an_answer_that_is_lost_does_not_cost_the_lease(scripted: KubernetesApi) -> None:
    held = lease(scripted, FakeTime(), "a")
    assert held.attempt(KEY) is None
    scripted.fault = lambda method: Answer(500, does=True) if method == "PUT" else None
    with pytest.raises(ArchiveUnreachable, match="answers 500"):
        held.renew()
    scripted.fault = lambda _: None
    held.renew()
    assert not held.is_lost


def test_files_of_the_account_are_read_for_each_request(api: AnyApi) -> None:
    account = api.account("renewed")
    leases = store(api, account)
    assert leases.get(KEY, MOST) is None
    api.revoke()
    with pytest.raises(RightsMissing, match=r"401: Unauthorized.*not accept the token in "):
        leases.get(KEY, MOST)
    (account / "token").write_text(api.token())
    assert leases.get(KEY, MOST) is None


HUGE = b'{"a": "' + b"x" * (1 << 21) + b'"}'


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (Answer(500), ArchiveUnreachable, "answers 500: without a reason"),
        (Answer(429, b'{"message": "later"}'), ArchiveUnreachable, "answers 429: later"),
        (Answer(503, b"<html>"), ArchiveUnreachable, "answers 503"),
        (Answer(400, b'{"message": "bad"}'), ConfigError, "answers 400: bad"),
        (Answer(200, b"[]"), ArchiveUnreachable, "without a Lease"),
        (Answer(200, b"nothing"), ArchiveUnreachable, "without a Lease"),
        (Answer(200, b'{"metadata": null}'), ArchiveUnreachable, "without a Lease"),
        (Answer(200, b'{"metadata": {"annotations": 1}}'), ArchiveUnreachable, "without a Lease"),
        (Answer(200, HUGE), ArchiveUnreachable, "more than 1,048,576 bytes"),
        (Answer(302, headers={"Location": "/elsewhere"}), ArchiveUnreachable, "answers 302"),
    ],
)
def test_an_answer_of_no_use_is_named(
    scripted: KubernetesApi, answer: Answer, kind: type[PlimsollError], message: str
) -> None:
    scripted.fault = lambda _: answer
    with pytest.raises(kind, match=message):
        store(scripted).get(KEY, MOST)
    # The token was not sent elsewhere.
    assert scripted.seen == []


def test_a_server_that_hangs_is_given_up(scripted: KubernetesApi) -> None:
    scripted.fault = lambda _: Answer(200, after_s=1.0)
    settings = KubernetesSettings.of_pod(scripted.environment, scripted.account(), None)
    with pytest.raises(ArchiveUnreachable, match=r"no answer in time"):
        KubernetesLeases(settings, timeout_s=0.2).get(KEY, MOST)


@pytest.mark.parametrize("right", ["get", "create", "update"])
def test_a_missing_right_is_named(api: AnyApi, right: str) -> None:
    api.allow(*{*VERBS.values()} - {right})
    with pytest.raises(RightsMissing, match=f"cannot {right} resource.*needs get, create and upd"):
        lease(api, FakeTime(), "a").attempt(KEY)


def test_a_namespace_that_does_not_exist_is_named(api: AnyApi) -> None:
    leases = store(api, namespace="nowhere")
    with pytest.raises(RightsMissing, match=r'cannot get resource .* in the namespace "no'):
        leases.get(KEY, MOST)
    api.allow(*VERBS.values(), everywhere=True)
    assert leases.get(KEY, MOST) is None
    with pytest.raises(ConfigError, match=r'namespaces "nowhere" not found.*standby_namespace'):
        leases.put_new(KEY, document())


def test_a_lease_of_another_tool_is_left_alone(api: AnyApi) -> None:
    api.place(name_of(KEY), {"holderIdentity": "else"})
    before = api.leases[name_of(KEY)]
    with pytest.raises(ConfigError, match="is not a lease of plimsoll"):
        lease(api, FakeTime(), "a").attempt(KEY)
    assert api.leases[name_of(KEY)] == before


def test_a_server_with_another_certificate_gets_no_token(
    scripted: KubernetesApi, tmp_path: Path
) -> None:
    account = scripted.account("untrusting")
    Authority.make("another").write(account / "ca.crt")
    with pytest.raises(ConfigError, match=r"is not valid by .*ca\.crt"):
        store(scripted, account).get(KEY, MOST)
    (account / "ca.crt").write_text("nothing")
    with pytest.raises(ConfigError, match=r"ca\.crt has no certificate in PEM form"):
        store(scripted, account).get(KEY, MOST)
    assert scripted.seen == []


def test_without_its_server_or_its_files_it_says_so(
    scripted: KubernetesApi, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    settings = KubernetesSettings(host="127.0.0.1", port=port, account=scripted.account())
    with pytest.raises(ArchiveUnreachable, match="cannot be reached"):
        KubernetesLeases(settings).get(KEY, MOST)
    absent = KubernetesSettings(host="127.0.0.1", port=port, account=tmp_path / "absent")
    leases = KubernetesLeases(absent)
    with pytest.raises(ConfigError, match=r"cannot be read .*automountServiceAccount"):
        leases.get(KEY, MOST)
    assert leases.where(KEY) == f"leases/{name_of(KEY)}"
    account = scripted.account("empty")
    (account / "token").write_text("\n")
    with pytest.raises(ConfigError, match="token is empty"):
        store(scripted, account).get(KEY, MOST)
    (account / "token").write_text("a\nb: c")
    with pytest.raises(ConfigError, match="token is not one line"):
        store(scripted, account).get(KEY, MOST)


@pytest.mark.parametrize("host", ["", None])
def test_outside_of_a_pod_it_is_refused(host: str | None, tmp_path: Path) -> None:
    given = {} if host is None else {"KUBERNETES_SERVICE_HOST": host}
    with pytest.raises(ConfigError, match='set standby_lease to "s3" or "kafka"'):
        KubernetesSettings.of_pod(given, tmp_path, None)
