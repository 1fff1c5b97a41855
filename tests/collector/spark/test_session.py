"""Start and end of Spark's JVM; test_stream has a session of its own."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from clients.jvm.java import find_java
from collector.spark.session import Spark
from collector.spool import Spool
from model.errors import ConfigError, PlimsollError
from tests.support.collector.sample_rows import rows
from tests.support.collector.spool_streams import spool_stream

pytestmark = pytest.mark.spark

KILLED = """
import os, sys
from pathlib import Path
from clients.jvm.java import find_java
from collector.spark.session import Spark
spark = Spark(find_java(), master="local[1]", log_file=Path(sys.argv[1]))
spark.start()
print(spark.pid, Path(f"/proc/{spark.pid}/cwd").resolve(), flush=True)
os.kill(os.getpid(), 9)
"""


def test_one_session_after_another_may_run_in_a_process(tmp_path: Path) -> None:
    for _ in range(2):
        spark = Spark(find_java(), master="local[1]", log_file=tmp_path / "spark.log")
        assert spark.start().range(3).count() == 3
        pid, folder = spark.pid, Path(f"/proc/{spark.pid}/cwd").resolve()
        assert folder.name.startswith("spark-")
        spark.close()
        assert pid is not None
        assert not psutil.pid_exists(pid)
        assert not folder.exists()


def test_a_java_that_does_not_start_names_its_log(tmp_path: Path) -> None:
    log_file = tmp_path / "spark.log"
    spark = Spark(find_java(), master="nonsense", log_file=log_file)
    with pytest.raises(PlimsollError, match=r"spark\.log"):
        spark.start()
    spark.close()


def test_workers_that_cannot_run_are_named_with_what_they_need(tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    Spool(tmp_path / "spool").write(rows(0, 6))
    spark = Spark(
        find_java(),
        master="local[1]",
        properties={"spark.pyspark.python": str(bare)},
        log_file=tmp_path / "log" / "spark.log",
    )
    try:
        session = spark.start()
        with pytest.raises(ConfigError, match=r"lacks pyspark\. Each needs Python 3"):
            spool_stream(session, tmp_path).run()
        session.sparkContext.pythonExec = "/nowhere/python"
        with pytest.raises(ConfigError, match=r"has no /nowhere/python\. Each needs"):
            spool_stream(session, tmp_path).run()
    finally:
        spark.close()


def test_no_process_is_left_when_plimsoll_is_killed(tmp_path: Path) -> None:
    code = [sys.executable, "-c", KILLED, str(tmp_path / "spark.log")]
    run = subprocess.run(code, capture_output=True, text=True, check=False)
    pid, folder = run.stdout.split()
    end = time.monotonic() + 300
    while psutil.pid_exists(int(pid)) or Path(folder).exists():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_session_closed_while_it_starts_leaves_no_process(tmp_path: Path) -> None:
    spark = Spark(find_java(), master="local[1]", log_file=tmp_path / "spark.log")
    failed: list[BaseException] = []

    def start() -> None:
        try:
            spark.start()
        except PlimsollError as exc:
            failed.append(exc)

    thread = threading.Thread(target=start)
    thread.start()
    while spark.pid is None:
        time.sleep(0.01)
    pid, folder = spark.pid, Path(f"/proc/{spark.pid}/cwd").resolve()
    assert folder.name.startswith("spark-")
    spark.close()
    thread.join()
    assert not psutil.pid_exists(pid)
    assert not folder.exists()
    assert len(failed) == 1
