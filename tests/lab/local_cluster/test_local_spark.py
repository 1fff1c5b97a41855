"""The Java of a local Spark cluster; test_spark_cluster covers the rest."""

import subprocess
from pathlib import Path

from clients.jvm.java import Java
from lab.local_cluster.processes import Processes
from tests.support.lab.local_spark import LocalSpark, java_home
from tests.support.web_server import Handler, serving


def java_program(folder: Path) -> Path:
    """A Java that prints its arguments, one per line."""
    path = folder / "a java"
    path.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    path.chmod(0o755)
    return path


def java(executable: Path, *, bundled: bool) -> Java:
    return Java(home=Path("/java"), executable=executable, version=21, bundled=bundled)


def test_the_bundled_java_runs_without_the_module_that_it_lacks(tmp_path: Path) -> None:
    home = java_home(java(java_program(tmp_path), bundled=True), tmp_path / "home")
    messages = ["-Dx=a b", "--add-modules=jdk.incubator.vector", "Main", "--add-modules=x"]
    run = subprocess.run(
        [home / "bin" / "java", *messages], capture_output=True, text=True, check=True
    )
    assert run.stdout.splitlines() == ["-Dx=a b", "Main", "--add-modules=x"]


def test_another_java_is_used_unchanged(tmp_path: Path) -> None:
    result = java_home(java(Path("/java/bin/java"), bundled=False), tmp_path / "home")
    assert result == Path("/java")
    assert not (tmp_path / "home").exists()


def test_a_master_has_no_workers_until_it_answers_in_json(tmp_path: Path) -> None:
    answers = iter([b"", b"<html>starting</html>", b"[]", b'{"aliveworkers": 2}'])

    class Master(Handler):
        def do_GET(self) -> None:
            body = next(answers)
            if body:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(body)

    processes = Processes(tmp_path / "lab")
    spark = LocalSpark(processes, java(Path("java"), bundled=False))
    try:
        with serving(Master) as url:
            spark._web_port = int(url.rpartition(":")[2])
            assert [spark.alive_workers() for _ in range(4)] == [0, 0, 0, 2]
    finally:
        processes.close()
