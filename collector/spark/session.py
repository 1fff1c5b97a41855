"""The Spark session of this process: its Java, its settings, its end."""

import hashlib
import logging
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psutil

from clients.jvm.class_archive import archive_flags
from clients.jvm.java import Java
from collector.spark.deployment import LOCAL, is_local, is_submitted, settings_of
from collector.spark.lasting_faults import first_line
from collector.spark.py_files import pack
from collector.state_dir import using
from model.errors import PlimsollError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START_S: Final = 60.0
"""A Java that has not answered by then will not."""

JVM_OPTIONS: Final = (
    "-Xmx512m",
    # The quick compiler only: a stream of small batches starts in half the time.
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    # Else every Java leaves a file in the system's temporary folder.
    "-XX:-UsePerfData",
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
)

ARCHIVES: Final = Path(sys.prefix, "share", "plimsoll")
"""Where archives of Spark's classes lie: in the environment to whose PySpark they belong."""

OPENED: Final = (
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "jdk.internal.ref",
    "sun.nio.ch",
    "sun.nio.cs",
    "sun.security.action",
    "sun.util.calendar",
)
"""Packages of java.base that Spark reaches into: JavaModuleOptions of its launcher.
The module jdk.incubator.vector, also listed there, is not in every Java."""

_SETTINGS: Final = {
    "spark.app.name": "plimsoll",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # The history's jobs stand in a pool of their own; batches do not wait for them.
    "spark.scheduler.mode": "FAIR",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "20",
    # The spool's files are many and small; their list need not be rewritten often.
    "spark.sql.streaming.fileSource.log.compactInterval": "100",
}
_JAVA_IMPORTS: Final = (
    "org.apache.spark.SparkConf",
    "org.apache.spark.api.java.*",
    "org.apache.spark.api.python.*",
    "org.apache.spark.resource.*",
    "org.apache.spark.sql.Encoders",
    "org.apache.spark.sql.OnSuccessCall",
    "org.apache.spark.sql.functions",
    "org.apache.spark.sql.classic.*",
    "org.apache.spark.sql.api.python.*",
    "scala.Tuple2",
)
_GATEWAY: Final = "org.apache.spark.api.python.PythonGatewayServer"
_SUBMIT: Final = "org.apache.spark.deploy.SparkSubmit"
_CONFIGURATIONS: Final = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
"""Folders of a cluster's own settings, which Spark takes from the class path."""
_GAVE_UP: Final = b"All masters are unresponsive! Giving up."
SCRATCH: Final = "spark-"
"""Scratch folders beside the log: this, the process and something of their own."""
_WORKERS_END_S: Final = 0.3
_log = logging.getLogger("plimsoll.collector")
# py4j reports every call that a dying JVM cuts off, to its own logger and to the root's.
logging.getLogger("py4j").setLevel(logging.CRITICAL)
logging.getLogger().addFilter(lambda record: "/py4j/" not in record.pathname)


def spark_home() -> Path:
    """Return the folder of the Spark distribution inside PySpark."""
    import pyspark

    return Path(pyspark.__file__).parent


def spark_class_path() -> str:
    """The class path of its JVM: all of its jars."""
    return str(spark_home() / "jars" / "*")


def spark_archive() -> str:
    """The name of its archive of classes; another one where Spark was installed again."""
    import pyspark

    jars = spark_home() / "jars"
    digest = hashlib.sha256(f"{jars} {jars.stat().st_mtime_ns}".encode()).hexdigest()[:12]
    return f"spark-{pyspark.__version__}-{digest}"


class Spark:
    """A session in a JVM of its own, which ends with this process, however that ends.

    PySpark knows one session per process, so there is one of these at a time. The
    JVM is started directly and not by the script `spark-submit`, which costs another
    JVM, wants JAVA_HOME, and asks for a module that not every Java has. Only where
    that script has started this process, its JVM, master and properties are used.
    """

    def __init__(
        self,
        java: Java,
        *,
        master: str,
        properties: Mapping[str, str] | None = None,
        jars: Sequence[Path] = (),
        jvm_options: Sequence[str] | None = None,
        log_file: Path,
    ) -> None:
        """jvm_options: added to `JVM_OPTIONS`; by default those that use the archive of classes."""
        self.master = _submitted_master() if is_submitted() else master
        self._java, self._properties, self._jars = java, properties or {}, jars
        self._log_file = log_file
        self._jvm_options = jvm_options
        with using(log_file.parent):
            log_file.parent.mkdir(parents=True, exist_ok=True)
            _remove_abandoned(log_file.parent)
            prefix = f"{SCRATCH}{os.getpid()}-"
            self._folder = Path(tempfile.mkdtemp(prefix=prefix, dir=log_file.parent))
        self._code = self._folder / "plimsoll.zip"
        self._properties_file = self._folder / "spark.properties"
        self._lock = threading.Lock()
        self._closed = False
        self._jvm: subprocess.Popen[bytes] | None = None
        self._gateway: Any = None
        self._session: SparkSession | None = None

    @property
    def pid(self) -> int | None:
        """Process id of the JVM; None before it starts."""
        return self._jvm.pid if self._jvm else None

    @property
    def alive(self) -> bool:
        """Whether its JVM has not ended by itself; that of `spark-submit` counts as alive."""
        return self._jvm is None or self._jvm.poll() is None

    def start(self) -> "SparkSession":
        """Start the JVM and the session; some four seconds on free cores.

        Raises PlimsollError, naming the log, when it does not come up.
        """
        try:
            settings = self._settings()
            if not is_submitted():
                self._gateway = self._connect(self._launch(settings))
            self._session = self._open(settings)
        except PlimsollError:
            raise
        except Exception as exc:  # py4j lets through whatever went wrong in the JVM
            reason = first_line(exc)
            if self._is_refused():
                reason = (
                    f"{self.master} did not accept this driver; check that spark_secret_file "
                    "holds the master's secret, where it has one"
                )
            raise PlimsollError(
                f"Spark did not start ({reason}). The output of its Java is in {self._log_file}."
            ) from exc
        return self._session

    def close(self) -> None:
        """End the JVM and delete its scratch files; works during the start, too."""
        with self._lock:
            self._closed = True
            jvm, self._jvm = self._jvm, None
        if jvm is not None:
            _end(jvm)
        if is_submitted() and self._session is not None:
            self._session.stop()
        self._forget()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _is_refused(self) -> bool:
        """Whether Spark gave up registering at its masters, which did answer before."""
        with suppress(OSError):
            return _GAVE_UP in self._log_file.read_bytes()
        return False

    def _settings(self) -> dict[str, str]:
        """Spark's properties; raises ClusterUnreachable where its master does not answer."""
        submitted = {} if is_submitted() else settings_of(self.master)
        given = filter(None, [self._properties.get("spark.jars")])
        return {
            **_SETTINGS,
            "spark.sql.warehouse.dir": f"file://{self._folder}/warehouse",
            **submitted,
            **self._properties,
            "spark.master": self.master,
            "spark.jars": ",".join([*map(str, self._jars), *given]),
        }

    def _launch(self, settings: Mapping[str, str]) -> "subprocess.Popen[bytes]":
        environment = dict(os.environ)
        environment["_PYSPARK_DRIVER_CONN_INFO_PATH"] = str(self._folder / "gateway")
        environment["SPARK_CONNECT_MODE"] = "0"
        if not is_local(self.master):
            # YARN takes the files for its machines from here.
            environment["SPARK_HOME"] = str(spark_home())
        with self._lock:
            if self._closed:
                raise PlimsollError("Spark was closed before it had started.")
            with self._log_file.open("wb") as log:
                self._jvm = subprocess.Popen(
                    self._command(settings),
                    cwd=self._folder,
                    env=environment,
                    # The gateway ends when this pipe closes, even by our death.
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    # A terminal's Ctrl-C is not for it.
                    start_new_session=True,
                )
            return self._jvm

    def _command(self, settings: Mapping[str, str]) -> list[str]:
        folders = filter(None, map(os.environ.get, _CONFIGURATIONS))
        class_path = os.pathsep.join(map(str, [spark_class_path(), *self._jars, *folders]))
        options = self._jvm_options
        if options is None:
            options = archive_flags(self._java, spark_archive(), ARCHIVES)
        opened = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED]
        return [
            str(self._java.executable),
            *JVM_OPTIONS,
            *options,
            f"-Djava.io.tmpdir={self._folder}",
            *opened,
            *("-cp", class_path),
            *self._main(settings),
        ]

    def _main(self, settings: Mapping[str, str]) -> list[str]:
        """Main class and arguments; only clusters need what `spark-submit` prepares."""
        if is_local(self.master):
            return [_GATEWAY]
        # A file, since everyone may read a command.
        lines = (f"{key}={_escaped(value)}\n" for key, value in settings.items())
        self._properties_file.write_text("".join(lines), "utf-8")
        given = ("--properties-file", str(self._properties_file))
        return [_SUBMIT, *given, "pyspark-shell"]

    def _connect(self, jvm: "subprocess.Popen[bytes]") -> Any:
        from py4j.clientserver import ClientServer, JavaParameters, PythonParameters
        from py4j.java_gateway import java_import

        port, secret = self._read_gateway(jvm)
        gateway = ClientServer(
            java_parameters=JavaParameters(port=port, auth_token=secret, auto_convert=True),
            python_parameters=PythonParameters(port=0, eager_load=False),
        )
        gateway.proc = jvm
        # Should this process be killed, the JVM clears up as it ends, from the last.
        for path in (self._folder, self._code, self._properties_file):
            gateway.jvm.java.io.File(str(path)).deleteOnExit()
        for name in _JAVA_IMPORTS:
            java_import(gateway.jvm, name)
        return gateway

    def _read_gateway(self, jvm: "subprocess.Popen[bytes]") -> tuple[int, str]:
        """Port and secret, which the JVM writes to a file in one step."""
        path = self._folder / "gateway"
        end = time.monotonic() + START_S
        while not path.exists():
            if jvm.poll() is not None or time.monotonic() > end:
                raise PlimsollError(
                    f"Spark did not start. The output of its Java is in {self._log_file}."
                )
            time.sleep(0.02)
        content = path.read_bytes()
        port, length = struct.unpack_from(">ii", content)
        path.unlink()
        return port, content[8 : 8 + length].decode()

    def _open(self, settings: Mapping[str, str]) -> "SparkSession":
        from pyspark import SparkConf, SparkContext
        from pyspark.sql import SparkSession

        SparkContext._ensure_initialized(gateway=self._gateway)  # noqa: SLF001
        conf = SparkConf()
        for key, value in settings.items():
            # What was given to `spark-submit`, which may have added to it, stays.
            conf.setIfMissing(key, value)
        context = SparkContext(conf=conf, gateway=self._gateway)
        # No trace on the terminal when the JVM leaves.
        setattr(context._accumulatorServer, "handle_error", lambda *_: None)  # noqa: B010, SLF001
        if python := self._properties.get("spark.pyspark.python"):
            context.pythonExec = python
        elif is_local(self.master):
            context.pythonExec = sys.executable
        path = list(sys.path)
        context.addPyFile(str(pack(self._code)))
        # It is for the workers; this process has its own code.
        sys.path[:] = path
        return SparkSession(context)

    def _forget(self) -> None:
        """Let PySpark forget the session, so that a new one can be made."""
        gateway, self._gateway = self._gateway, None
        session, self._session = self._session, None
        if gateway is None:
            return
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        if session is not None:
            session.sparkContext._jsc = None  # noqa: SLF001 - the JVM is gone already
            session.sparkContext.stop()
        gateway.shutdown_callback_server()
        gateway.close()
        for owner, name in (
            (SparkContext, "_active_spark_context"),
            (SparkContext, "_gateway"),
            (SparkContext, "_jvm"),
            (SparkSession, "_instantiatedSession"),
            (SparkSession, "_activeSession"),
        ):
            setattr(owner, name, None)


def _end(jvm: "subprocess.Popen[bytes]") -> None:
    """Kill the JVM and its Python workers, which may write to their folder till then.

    Nothing is in them that a clean end would save, and that takes two seconds.
    """
    try:
        workers = psutil.Process(jvm.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        workers = []
    jvm.kill()
    jvm.wait()
    if jvm.stdin is not None:
        jvm.stdin.close()
    for worker in workers:
        with suppress(psutil.NoSuchProcess):
            worker.kill()
    psutil.wait_procs(workers, timeout=_WORKERS_END_S)


def _submitted_master() -> str:
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()  # noqa: SLF001 - connects to the JVM that is there
    return SparkConf().get("spark.master", LOCAL)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")


def _remove_abandoned(parent: Path) -> None:
    """Remove the scratch folders of processes that were killed."""
    for folder in parent.glob(f"{SCRATCH}*-*"):
        pid = folder.name.removeprefix(SCRATCH).partition("-")[0]
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)
