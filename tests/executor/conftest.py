"""Fixtures of the tests that run on real clusters."""

import gc
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from executor.client.kafka_admin import KafkaAdmin
from executor.executor import Executor, connect
from lab.local_cluster.local_cluster import LocalCluster
from tests.support.executor.proxied_cluster import Proxied, proxied
from tests.support.executor.real_runs import TIMEOUT_S


@pytest.fixture
def topic() -> str:
    """A name that no other test has."""
    return f"moves-{uuid.uuid4().hex[:6]}"


@pytest.fixture
def bootstrap(local_cluster: LocalCluster) -> str:
    """Of the cluster; a module on another one has a fixture of its own."""
    return local_cluster.bootstrap


@pytest.fixture
def admin(bootstrap: str) -> Iterator[KafkaAdmin]:
    with KafkaAdmin(bootstrap, TIMEOUT_S) as opened:
        yield opened


@pytest.fixture
def executor(bootstrap: str) -> Iterator[Executor]:
    with connect(bootstrap, timeout_s=TIMEOUT_S) as opened:
        yield opened


@pytest.fixture(scope="module")
def behind_proxy(request: pytest.FixtureRequest) -> Iterator[Proxied]:
    """A cluster with the properties `BROKER_PROPERTIES` of the module, if any."""
    with proxied(getattr(request.module, "BROKER_PROPERTIES", {})) as started:
        yield started


@pytest.fixture
def site(behind_proxy: Proxied, tmp_path: Path) -> Iterator[Proxied]:
    """The cluster of the module, with nothing harmed and journals of the test alone."""
    behind_proxy.folder = tmp_path
    yield behind_proxy
    behind_proxy.proxy.heal()
    gc.collect()
