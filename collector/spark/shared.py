"""One Spark for the collectors of several clusters in one process."""

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from clients.jvm.java import Java
from collector.spark.deployment import LOCAL
from model.errors import ConfigError, PlimsollError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from collector.spark.session import Spark

_CLOSED: Final = "Spark was closed before it had started."


class SparkUse(Protocol):
    """Spark, as a collector uses it."""

    master: str

    @property
    def pid(self) -> int | None:
        """Process id of the JVM; None before it starts."""
        ...

    def start(self) -> "SparkSession":
        """The session; raises PlimsollError where Spark does not start."""
        ...

    def close(self) -> None:
        """End the use; works during the start, too."""
        ...


class SparkMaker(Protocol):
    """Creates what a collector uses; `collector.spark.session.Spark` is one."""

    def __call__(
        self,
        java: Java,
        *,
        master: str,
        properties: Mapping[str, str] | None = None,
        jars: Sequence[Path] = (),
        log_file: Path,
    ) -> SparkUse:
        """Arguments as those of `Spark`."""
        ...


class SharedSpark:
    """A JVM that starts with its first user and ends with its last; a maker of `SparkUse`.

    Each user gets a session of its own in it, with its own streaming queries. A JVM that has died
    is replaced for the next user that starts: the collectors of the others fail and come back.
    """

    def __init__(self, log_file: Path, clusters: int) -> None:
        """log_file: the output of the JVM. clusters: how many users there may be."""
        self._log_file = log_file
        self._slots = max(os.cpu_count() or 1, clusters + 1)
        """Tasks at once on this machine: one that waits for a cluster leaves room for others."""
        self._starting = threading.Lock()
        self._lock = threading.Lock()
        """Guards what follows, and is held for moments."""
        self._users: set[_Share] = set()
        self._spark: Spark | None = None
        self._session: SparkSession | None = None
        self._made_with: tuple[str, Mapping[str, str]] = "", {}
        self._jars: set[Path] = set()

    def __call__(
        self,
        java: Java,
        *,
        master: str,
        properties: Mapping[str, str] | None = None,
        jars: Sequence[Path] = (),
        log_file: Path,
    ) -> SparkUse:
        """A use of the shared JVM; log_file: not used, since one JVM has one."""
        del log_file
        return _Share(self, java, master, properties or {}, jars)

    @property
    def pid(self) -> int | None:
        """Process id of the JVM; None while there is none."""
        spark = self._spark
        return None if spark is None else spark.pid

    def join(self, user: "_Share") -> "SparkSession":
        """The user's session; starts the JVM where there is none, or it has died.

        Raises ConfigError where the JVM that runs was started with other settings, PlimsollError
        where it does not start, or the user was closed.
        """
        with self._starting:
            with self._lock:
                if user.closed:
                    raise PlimsollError(_CLOSED)
                dead = self._spark if self._spark is not None and not self._spark.alive else None
                if dead is not None:
                    self._spark, self._session = None, None
                    self._users.clear()
                self._users.add(user)
            if dead is not None:
                dead.close()
            try:
                session = self._session if self._spark is not None else self._start(user)
                if session is None or self._made_with != (user.master, user.properties):
                    raise ConfigError(
                        "the clusters of a fleet share one Spark, which runs with another "
                        "spark_master or [spark] than here; give them the same ones"
                    )
                self._add_jars(session, user.jars)
                return session.newSession()
            except BaseException:
                self.leave(user)
                raise

    def _start(self, user: "_Share") -> "SparkSession":
        from collector.spark.session import Spark

        master = f"local[{self._slots}]" if user.master == LOCAL else user.master
        spark = Spark(
            user.java,
            master=master,
            properties=user.properties,
            jars=user.jars,
            log_file=self._log_file,
        )
        with self._lock:
            # From here on the last one that leaves ends it.
            self._spark = spark
            closed = user.closed
        if closed:
            raise PlimsollError(_CLOSED)
        session = spark.start()
        with self._lock:
            self._session = session if self._spark is spark else None
            self._made_with, self._jars = (user.master, user.properties), set(user.jars)
        return session

    def _add_jars(self, session: "SparkSession", jars: Sequence[Path]) -> None:
        for jar in jars:
            if jar not in self._jars:
                session.sql(f"ADD JAR '{jar.absolute().as_uri()}'")
                self._jars.add(jar)

    def leave(self, user: "_Share") -> None:
        """End a use; the last one ends the JVM."""
        with self._lock:
            if user not in self._users:
                return
            self._users.discard(user)
            if self._users:
                return
            spark, self._spark, self._session = self._spark, None, None
        if spark is not None:
            spark.close()


class _Share:
    """One user's part of a shared Spark."""

    def __init__(
        self,
        shared: SharedSpark,
        java: Java,
        master: str,
        properties: Mapping[str, str],
        jars: Sequence[Path],
    ) -> None:
        self._shared, self.java = shared, java
        self.master, self.properties, self.jars = master, properties, jars
        self.closed = False

    @property
    def pid(self) -> int | None:
        return self._shared.pid

    def start(self) -> "SparkSession":
        return self._shared.join(self)

    def close(self) -> None:
        self.closed = True
        self._shared.leave(self)
