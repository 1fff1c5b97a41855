"""A standalone Spark cluster on this machine: a master and its workers."""

import json
import os
import shlex
import time
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Final
from urllib.request import urlopen

from clients.jvm.java import Java
from collector.spark.session import OPENED, spark_home
from lab.local_cluster.processes import Processes
from lab.local_cluster.tcp_ports import HOST, free_ports
from model.errors import ClusterUnreachable

READY_S: Final = 90.0
_PAUSE_S: Final = 0.1
_MASTER: Final = "spark-master"
_DEPLOY: Final = "org.apache.spark.deploy"
_JVM_FLAGS: Final = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
_ABSENT: Final = "--add-modules=jdk.incubator.vector"
"""An option that Spark passes to every Java, and that not each one knows."""


class LocalSpark:
    """A master and two workers of one core each, from PySpark's own jars.

    environ: environment of the workers, which locates Python and its packages.
    secret: what drivers have to know; None lets in everyone. Closing the processes stops it.
    """

    def __init__(
        self,
        processes: Processes,
        java: Java,
        *,
        environ: Mapping[str, str] = os.environ,
        secret: str | None = None,
    ) -> None:
        self._processes, self._java = processes, java
        self._port, self._web_port = free_ports(2)
        self.workers: Final = ("spark-worker-1", "spark-worker-2")
        """Names of the workers' processes."""
        self._options: tuple[str, ...] = ()
        if secret is not None:
            properties = processes.folder / "secured.properties"
            properties.write_text(
                "spark.authenticate=true\nspark.network.crypto.enabled=true\n"
                f"spark.authenticate.secret={secret}\n"
            )
            self._options = ("--properties-file", str(properties))
        self._environ = {
            **environ,
            "JAVA_HOME": str(java_home(java, processes.folder / "java")),
            "SPARK_HOME": str(spark_home()),
            "SPARK_SCALA_VERSION": "2.13",
            "SPARK_LOCAL_IP": HOST,
            "SPARK_LOCAL_DIRS": str(processes.folder / "spark"),
        }

    @property
    def master(self) -> str:
        """Master URL for jobs."""
        return f"spark://{HOST}:{self._port}"

    def launch(self) -> None:
        """Start master and workers without waiting for them."""
        place = ("--host", HOST, "--port", str(self._port), *self._options)
        self._spawn(_MASTER, "master.Master", *place, "--webui-port", str(self._web_port))
        for name in self.workers:
            self.launch_worker(name)

    def launch_worker(self, name: str) -> None:
        """Start a worker, or restart a killed one."""
        folder = self._processes.folder / name
        self._spawn(
            name,
            "worker.Worker",
            *("--host", HOST, "--cores", "1", "--memory", "1g"),
            *("--work-dir", str(folder), "--webui-port", "0"),
            *self._options,
            self.master,
        )

    def wait_ready(self) -> None:
        """Wait until every worker is registered.

        Raises ClusterUnreachable: a process ended, or workers are missing after `READY_S`.
        """
        end = time.monotonic() + READY_S
        while self.alive_workers() < len(self.workers):
            names = (_MASTER, *self.workers)
            dead = [name for name in names if self._processes.exit_code(name) is not None]
            if dead or time.monotonic() > end:
                name = dead[0] if dead else _MASTER
                raise ClusterUnreachable(
                    f"The local {name} did not start. End of its log:\n"
                    f"{self._processes.log_tail(name)}"
                )
            time.sleep(_PAUSE_S)

    def alive_workers(self) -> int:
        """Number of registered workers; 0 until the master responds with JSON.

        A starting master may close the connection or respond with HTML.
        """
        url = f"http://{HOST}:{self._web_port}/json/"
        try:
            with urlopen(url, timeout=5) as answer:
                return int(json.load(answer)["aliveworkers"])
        except (OSError, HTTPException, ValueError, TypeError, KeyError):
            return 0

    def _spawn(self, name: str, program: str, *arguments: str) -> None:
        opened = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED]
        command = [
            str(self._java.executable),
            *_JVM_FLAGS,
            *opened,
            *("-cp", str(spark_home() / "jars" / "*")),
            f"{_DEPLOY}.{program}",
        ]
        self._processes.spawn(name, [*command, *arguments], environ=self._environ)


def java_home(java: Java, folder: Path) -> Path:
    """Path of a JAVA_HOME that works with Spark's scripts and workers.

    They require a module that the bundled Java lacks; for that one, `folder` gets a
    wrapper script that drops the option.
    """
    if not java.bundled:
        return java.home
    script = folder / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(
        "#!/bin/sh\n"
        f'for word do shift; [ "$word" = {_ABSENT} ] || set -- "$@" "$word"; done\n'
        f'exec {shlex.quote(str(java.executable))} "$@"\n'
    )
    script.chmod(0o755)
    return folder
