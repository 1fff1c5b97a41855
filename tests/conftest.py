"""Fixtures shared by tests of several packages."""

import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from clients.jvm.jars import default_cache_dir
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan
from tests.support.automq import AutoMQCluster, automq_home
from tests.support.kube_apiserver import KubeApiserver, kube_apiserver, kubernetes_home
from tests.support.one_shared_cluster import OneSharedCluster, is_on_shared_cluster

OUTER = {
    "ALL_VERSIONS",
    "AUTOMQ_HOME",
    "CACHE_DIR",
    "CRUISE_CONTROL_HOME",
    "JAVA",
    "KUBERNETES_HOME",
    "SOAK_MINUTES",
}
"""Variables for the test suite itself, without their prefix."""

# No test stops one of these brokers, and a busy machine must not look as if one did.
STEADY = LocalPlan(properties={"broker.session.timeout.ms": "60000"})

_shared_cluster = pytest.StashKey[LocalCluster]()

# A busy machine says nothing about the code: examples have no time limit.
settings.register_profile("any load", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any load")


@pytest.fixture(scope="session", autouse=True)
def _signals_as_in_a_terminal() -> Iterator[None]:
    """Let tests and their children get signals that a shell or nohup has ignored.

    A shell ignores SIGINT for what it starts in the background, nohup ignores SIGHUP,
    and children inherit both.
    """
    usual: dict[signal.Signals, Any] = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGHUP: signal.SIG_DFL,
    }
    ignored = [n for n in usual if signal.getsignal(n) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, usual[number])
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


def pytest_configure(config: pytest.Config) -> None:
    """Drop settings of whoever runs the tests, and let kafka-python be used.

    Warnings are errors, but on Python 3.11 its import uses deprecated calls, and it leaves the
    sockets of refused connections, which never got an address, to the garbage collector.
    """
    prefix = "PLIMSOLL_"
    for name in [n for n in os.environ if n.startswith(prefix)]:
        if name.removeprefix(prefix) not in OUTER:
            del os.environ[name]
    for ignored in (
        "ignore:(read|open)_text is deprecated:DeprecationWarning",
        r"ignore:unclosed <socket.*laddr=\('0\.0\.0\.0':ResourceWarning",
    ):
        config.addinivalue_line("filterwarnings", ignored)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let connections fail in tests on real brokers, whatever the reason.

    On a crowded machine, some time out, and kafka-python leaves the sockets of those to the
    garbage collector, which may run in any later test.
    """
    for item in items:
        if item.get_closest_marker("kafka"):
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Distribute whole files, those on the shared cluster to the same worker."""
    return OneSharedCluster(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    """Let no test that configures logging affect the next ones."""
    logger = logging.getLogger("plimsoll")
    handlers, level, propagate = list(logger.handlers), logger.level, logger.propagate
    yield
    logger.handlers[:] = handlers
    logger.setLevel(level)
    logger.propagate = propagate


@pytest.fixture(scope="session")
def local_cluster(request: pytest.FixtureRequest) -> Iterator[LocalCluster]:
    """Three local brokers with a remote tier and S3, shared by all tests marked kafka.

    A test makes topics of its own and leaves every broker running.
    """
    with LocalCluster(default_cache_dir(), STEADY) as cluster:
        request.config.stash[_shared_cluster] = cluster
        yield cluster


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End the shared cluster after the last test on it; idle brokers take a third of a core."""
    cluster = item.config.stash.get(_shared_cluster, None)
    if cluster is None:
        return
    if hasattr(item.config, "workerinput"):
        # A worker runs all files on it one after another.
        rest = [nextitem] if nextitem is not None else []
    else:
        rest = item.session.items[item.session.items.index(item) + 1 :]
    if not any(is_on_shared_cluster(one.nodeid.partition("::")[0]) for one in rest):
        cluster.close()


@pytest.fixture
def new_cluster() -> Iterator[LocalCluster]:
    """The same cluster without any topic, for plans of the whole cluster.

    Topics left by other tests may carry some traffic, which leads to further moves.
    """
    with LocalCluster(default_cache_dir(), STEADY) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def automq_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AutoMQCluster]:
    """Three nodes of a real AutoMQ, shared by all tests marked automq.

    A test makes topics of its own and leaves every node and setting as it was.
    """
    home: Path | None = automq_home()
    if home is None:
        pytest.skip("no AutoMQ: set PLIMSOLL_AUTOMQ_HOME to a folder with up.py")
    cluster = AutoMQCluster(home, tmp_path_factory.mktemp("automq"))
    try:
        yield cluster.wait_ready()
    finally:
        cluster.close()


@pytest.fixture(scope="session")
def _kube_apiserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeApiserver]:
    home = kubernetes_home()
    if home is None:
        pytest.skip("no kube-apiserver and etcd: set PLIMSOLL_KUBERNETES_HOME to their folder")
    with kube_apiserver(home, tmp_path_factory.mktemp("kubernetes")) as api:
        yield api


@pytest.fixture
def real_api(_kube_apiserver: KubeApiserver) -> Iterator[KubeApiserver]:
    """A real API server of Kubernetes without leases, shared by all tests that need one."""
    yield _kube_apiserver
    _kube_apiserver.reset()


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """URL of an S3 server for one module."""
    from tests.support.executor.s3_server import s3_server

    with s3_server() as url:
        yield url
