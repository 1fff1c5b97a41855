"""One JVM for several users; each test starts one of its own."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from clients.jvm.java import find_java
from collector.spark.shared import SharedSpark, SparkUse
from model.errors import ConfigError, PlimsollError

pytestmark = pytest.mark.spark


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[SharedSpark]:
    found = SharedSpark(tmp_path / "spark.log", 2)
    yield found
    if found.pid is not None:
        psutil.Process(found.pid).kill()


def user(shared: SharedSpark, master: str = "local[*]") -> SparkUse:
    return shared(find_java(), master=master, log_file=Path("unused.log"))


def test_users_have_sessions_of_their_own_in_one_jvm_which_is_replaced_if_it_dies(
    shared: SharedSpark,
) -> None:
    first, second = user(shared), user(shared)
    one, other = first.start(), second.start()
    pid = first.pid
    assert pid is not None
    assert second.pid == pid
    one.conf.set("spark.sql.shuffle.partitions", "7")
    assert other.conf.get("spark.sql.shuffle.partitions") == "2"
    # More than users, on this machine.
    assert one.sparkContext.defaultParallelism >= 3
    differs = user(shared, "local[1]")
    with pytest.raises(ConfigError, match="share one Spark, which runs with another"):
        differs.start()
    differs.close()
    first.close()
    assert other.range(3).count() == 3

    os.kill(pid, signal.SIGKILL)
    psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], timeout=60)
    third = user(shared)
    assert third.start().range(4).count() == 4
    assert third.pid not in (None, pid)
    # That of the JVM that has died.
    second.close()
    assert third.pid is not None
    assert psutil.pid_exists(third.pid)
    last = third.pid
    third.close()
    assert shared.pid is None
    assert not psutil.pid_exists(last)


def test_a_user_that_is_closed_during_the_start_ends_the_jvm(shared: SharedSpark) -> None:
    only = user(shared)
    errors: list[Exception] = []

    def start() -> None:
        try:
            only.start()
        except PlimsollError as exc:
            errors.append(exc)

    thread = threading.Thread(target=start)
    thread.start()
    while only.pid is None:
        assert thread.is_alive()
    only.close()
    thread.join(60)
    assert len(errors) == 1
    assert shared.pid is None
    with pytest.raises(PlimsollError, match="closed"):
        only.start()
