"""Two services on one simulated cluster and bucket: one leads, the other takes over."""

import contextlib
import json
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.control.cli.test_serving import NOWHERE, WAIT_S, Service
from tests.control.cli.test_simulated_service import (
    AUTO,
    SETTINGS,
    SIMULATED,
    ctl,
    events,
    journalled,
    moving,
    until,
)
from tests.support.cli_offline import plimsoll, refused
from tests.support.executor.s3_server import BUCKET, client, s3_server, s3_settings
from tests.support.kube_apiserver import AnyApi, KubeApiserver
from tests.support.kubernetes_api import KubernetesApi, kubernetes_api
from tests.support.paths import ROOT

IDLE_MS = 20_000
"""How long the lease of a run lasts between its requests."""
UNKNOWN = "nothing is changed while it is not known who leads"
SHARED = """
[service]
standby = true
{lease}
[archive]
endpoint_url = "{endpoint}"
bucket = "{bucket}"
prefix = "{prefix}"
access_key = "me"
secret_key = "secret"
"""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with s3_server() as found:
        yield found


@pytest.fixture
def scripted(tmp_path: Path) -> Iterator[KubernetesApi]:
    folder = tmp_path / "kubernetes"
    folder.mkdir()
    with kubernetes_api(folder) as found:
        yield found


@pytest.fixture(params=["scripted", "real_api"])
def api(request: pytest.FixtureRequest) -> AnyApi:
    """An API server of Kubernetes: one of the tests' own, and a real one."""
    found: AnyApi = request.getfixturevalue(request.param)
    return found


def host(
    parent: Path,
    name: str,
    endpoint: str,
    *,
    trigger: str = "act",
    pause_s: int = 1,
    api: AnyApi | None = None,
) -> Service:
    """A service that is not started yet, with a state folder of its own.

    api: keeps the lease on leading instead of the bucket.
    """
    folder = parent / name
    folder.mkdir(exist_ok=True)
    lease = ""
    if api is not None:
        account = api.account()
        lease = f'standby_lease = "kubernetes"\nstandby_service_account = "{account}"'
    shared = SHARED.format(endpoint=endpoint, bucket=BUCKET, prefix=f"{parent.name}/", lease=lease)
    own = SETTINGS.format(trigger=trigger).replace("pause = 1\n", f"pause = {pause_s}\n")
    (folder / "own.toml").write_text(own + shared)
    environment = {"PLIMSOLL_CONFIG": str(folder / "own.toml"), "PYTHONPATH": str(ROOT)}
    environment |= {} if api is None else api.environment
    log = ("--log-file", str(folder / "log.jsonl"))
    return Service(folder, (*AUTO, *log), environment, SIMULATED)


def wait_logged(folder: Path, text: str) -> None:
    """Wait until the log has a text."""
    deadline = time.monotonic() + WAIT_S
    log = folder / "log.jsonl"
    while not log.exists() or text not in log.read_text():
        assert time.monotonic() < deadline, text
        time.sleep(0.2)


def wait_idle(endpoint: str, prefix: str) -> None:
    """Wait until no request of the run is open, so that its lease is short."""
    deadline, key = time.monotonic() + WAIT_S, f"{prefix}/simulated/lease.json"
    while True:
        found = client(s3_settings(endpoint)).get_object(Bucket=BUCKET, Key=key)
        document = json.loads(found["Body"].read())
        if document["duration_ms"] <= IDLE_MS:
            return
        assert time.monotonic() < deadline, document
        time.sleep(0.05)


def leads(folder: Path) -> bool:
    return bool(until(folder, lambda status: status["standby"] is not None)["standby"]["leads"])


@pytest.mark.soak
@pytest.mark.parametrize("lease", ["s3", "scripted", "real_api"])
def test_the_second_service_answers_reads_and_resumes_the_run_of_the_first(
    tmp_path: Path, endpoint: str, request: pytest.FixtureRequest, lease: str
) -> None:
    a, b = (tmp_path / name for name in "ab")
    keeper: AnyApi | None = None if lease == "s3" else request.getfixturevalue(lease)
    with host(tmp_path, "a", endpoint, api=keeper) as first:
        first.wait_for("/metrics\n")
        run = until(a, moving)["run"]
        assert leads(a)
        with host(tmp_path, "b", endpoint, pause_s=2, api=keeper) as second:
            second.wait_for("/metrics\n")
            status = until(b, lambda s: s["phase"] == "standing by" and s["standby"]["leader"])
            assert (status["run"], status["standby"]["leads"]) == (None, False)
            assert f"plimsoll {first.process.pid} on " in status["standby"]["leader"]
            # Said in the log and the status, and left alone.
            assert status["standby"]["other_policy"]
            wait_logged(b, "with another policy or version")
            assert second.get("/livez") == (200, "ok\n")
            code, words = second.get("/readyz")
            assert (code, words.startswith("standby: plimsoll ")) == (200, True)
            assert second.counts("plimsoll_leads") == {(): 0}
            assert first.counts("plimsoll_leads") == {(): 1}
            assert first.counts("plimsoll_leader_info") == second.counts("plimsoll_leader_info")
            assert "ask the one that leads" in ctl(b, "pause", code=5)
            assert "standby: plimsoll" in plimsoll(b, "ctl", "status").stdout

            wait_idle(endpoint, tmp_path.name)
            first.process.kill()
            first.process.wait()
            resumed = until(b, moving)
            assert resumed["run"]["run_id"] == run["run_id"]
            assert resumed["run"]["plan_hash"] == run["plan_hash"]
            assert resumed["standby"] == {
                "leads": True,
                "leader": resumed["standby"]["leader"],
                "message": "",
                "other_policy": False,
            }
            assert second.counts("plimsoll_leads") == {(): 1}
            # The first one comes back, and stands by.
            with host(tmp_path, "a", endpoint, api=keeper) as again:
                again.wait_for("/metrics\n")
                assert not until(a, lambda s: s["phase"] == "standing by")["standby"]["leads"]
                ctl(b, "abort")
                until(b, lambda s: s["run"] is None)
                # Together with the pause that comes with the abort.
                until(a, lambda s: s["paused"] is not None)
                second.signalled(signal.SIGTERM)
                assert second.process.wait(WAIT_S) is not None
                until(a, lambda s: s["standby"]["leads"])
                assert until(a, lambda s: "paused by" in s["message"])["run"] is None
    records = journalled(b)
    assert set(records) == {run["run_id"]} == set(journalled(a))
    assert records[run["run_id"]].count("resumed") == 1
    assert records[run["run_id"]].count("started") == 1
    assert {"standby.waits", "standby.leads"} <= set(events(b))
    assert keeper is None or len(keeper.leases) == 1


def test_without_the_bucket_no_service_leads_and_nothing_begins(tmp_path: Path) -> None:
    a = tmp_path / "a"
    with host(tmp_path, "a", "http://127.0.0.1:1") as service:
        wait_logged(a, "it is not known who leads: ")
        status = until(a, lambda s: UNKNOWN in s["message"])
        assert status["phase"] == "standing by"
        assert status["standby"]["leader"] == ""
        code, words = service.get("/readyz")
        assert (code, "it is not known who leads" in words) == (503, True)
        assert service.get("/livez") == (200, "ok\n")
        # A person may pause a service without a leader.
        ctl(a, "pause")
        service.signalled(signal.SIGTERM)
        assert service.process.wait(WAIT_S) == 0
    assert journalled(a) == {}


def test_without_the_right_to_a_lease_no_service_leads_until_it_is_given(
    tmp_path: Path, endpoint: str, api: AnyApi
) -> None:
    a = tmp_path / "a"
    api.allow("get")
    with host(tmp_path, "a", endpoint, api=api, trigger="off") as service:
        wait_logged(a, 'cannot create resource \\"leases\\"')
        status = until(a, lambda s: "it is not known who leads" in s["message"])
        assert status["phase"] == "standing by"
        assert service.get("/readyz")[0] == 503
        api.allow("get", "create", "update")
        until(a, lambda s: s["standby"]["leads"])
    assert journalled(a) == {}


def test_one_service_leads_after_the_api_server_was_away(
    tmp_path: Path, endpoint: str, real_api: KubeApiserver
) -> None:
    services = {
        tmp_path / name: host(tmp_path, name, endpoint, api=real_api, trigger="off")
        for name in "ab"
    }
    token = real_api.account() / "token"
    with contextlib.ExitStack() as stack:
        for service in services.values():
            stack.enter_context(service).wait_for("/metrics\n")
        until_one_leads(services)
        real_api.revoke()
        for folder in services:
            wait_logged(folder, "answers 401: Unauthorized")
        token.write_text(real_api.token())
        until_one_leads(services)
        real_api.stop()
        for folder, service in services.items():
            wait_logged(folder, "cannot be reached")
            until(folder, lambda s: UNKNOWN in s["message"] and not s["standby"]["leads"])
            assert service.get("/readyz")[0] == 503
            assert service.get("/livez") == (200, "ok\n")
        real_api.start()
        leader, other = until_one_leads(services)
        services[leader].signalled(signal.SIGTERM)
        assert services[leader].process.wait(WAIT_S) == 0
        until(other, lambda s: s["standby"]["leads"])
        (lease,) = real_api.leases.values()
        holder = f"plimsoll {services[other].process.pid} on "
        assert lease["spec"]["holderIdentity"].startswith(holder)
    assert all(journalled(folder) == {} for folder in services)


def until_one_leads(folders: Iterable[Path]) -> list[Path]:
    """The folder of the service that leads, and that of the one that knows it."""
    deadline = time.monotonic() + WAIT_S
    while True:
        found = {folder: until(folder, lambda s: s["standby"] is not None) for folder in folders}
        leading = [folder for folder, status in found.items() if status["standby"]["leads"]]
        if len(leading) == 1 and all(status["standby"]["leader"] for status in found.values()):
            return sorted(found, key=lambda folder: folder not in leading)
        assert time.monotonic() < deadline, found
        time.sleep(0.2)


@pytest.mark.slow
def test_standby_needs_auto_an_archive_and_what_keeps_its_lease(tmp_path: Path) -> None:
    own = {"PLIMSOLL_SERVICE__STANDBY": "true", "PLIMSOLL_SERVICE__LISTEN": "127.0.0.1:0"}
    run = plimsoll(tmp_path, "service", "-b", NOWHERE, **own)
    refused(run, 5, "standby in [service] is for services that act")
    automatic = ("--auto", "--limits", "conservative", "--allow-changes")
    run = plimsoll(tmp_path, "service", "-b", NOWHERE, *automatic, **own)
    refused(run, 2, "standby in [service] needs [archive]")
    elsewhere = {"PLIMSOLL_SERVICE__STANDBY_LEASE": "kubernetes"}
    bucket = {"PLIMSOLL_ARCHIVE": '{"bucket": "b", "endpoint_url": "http://127.0.0.1:1"}'}
    run = plimsoll(tmp_path, "service", "-b", NOWHERE, *automatic, **own, **elsewhere, **bucket)
    refused(run, 2, "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
