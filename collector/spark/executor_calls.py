"""Calls of one function on Spark's executors, each in a job of its own."""

import hashlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Any, Final

from clients.jvm.java import find_java
from collector.spark.deployment import SparkSite, is_local
from collector.spark.lasting_faults import first_line, lasting_fault
from collector.spark.py_files import pack
from collector.spark.session import SCRATCH, Spark
from collector.spark.shipped_code import call_shipped
from model.errors import PlimsollError

NEEDED: Final = "the packages that plimsoll itself needs"
"""What the Python of an executor needs, as messages name it."""

_STEP_S: Final = 0.2
_DIGITS: Final = 12
"""Hexadecimal digits of the code's digest in its name."""


class ExecutorCalls:
    """Calls of functions in shipped packages, over one Spark session that the first one starts.

    packages: packages of plimsoll that the functions are in, and those that these import; they
    are unpacked on the executors. log_file: where Spark's Java writes, in a folder of our own.
    """

    def __init__(self, site: SparkSite, packages: Sequence[str], log_file: Path) -> None:
        self._site, self._packages, self._log_file = site, packages, log_file
        self._spark: Spark | None = None
        self._session: Any = None
        self._archive: Path | None = None

    def __call__(
        self,
        function: str,
        shared: bytes,
        arguments: Sequence[bytes],
        stops: Callable[[], bool] = lambda: False,
    ) -> Iterator[bytes]:
        """Call `function`, as `module:name`, with `shared` and each argument; yield in order.

        Spark repeats calls whose executor was lost. Ends early where `stops` turns true; calls
        still running are cancelled then, and when the iterator is closed.

        Raises PlimsollError where Spark does not start, or a call fails on its executor, and
        ClusterUnreachable where a standalone master does not answer.
        """
        context, archive = self._context()
        broadcast = context.broadcast(shared)
        call = partial(_call, context, partial(call_shipped, archive.name, function, broadcast))
        yield from _results(context, call, arguments, stops)

    def close(self) -> None:
        """End Spark; works before the first call, too."""
        if self._spark is not None:
            self._spark.close()
        if self._archive is not None:
            shutil.rmtree(self._archive.parent, ignore_errors=True)
        self._spark = self._session = self._archive = None

    def _context(self) -> tuple[Any, Path]:
        """Return the Spark context and the code sent to it; start Spark at the first call."""
        if self._session is None or self._archive is None:
            properties = dict(self._site.properties)
            if not is_local(self._site.master):
                # Unlike a watch, a command ends, so it may take every core meanwhile.
                properties.setdefault("spark.cores.max", str(2**31 - 1))
            self._spark = Spark(
                find_java(),
                master=self._site.master,
                properties=properties,
                log_file=self._log_file,
            )
            self._session = self._spark.start().sparkContext
            self._archive = _packed(self._packages, self._log_file.parent)
            self._session.addFile(str(self._archive))
        return self._session, self._archive


def _packed(packages: Sequence[str], folder: Path) -> Path:
    """Write the packages as a zip in a scratch folder, named by its content; return its path."""
    # Named like Spark's own, so that it is removed even if this process is killed.
    scratch = Path(tempfile.mkdtemp(prefix=f"{SCRATCH}{os.getpid()}-", dir=folder))
    packed = pack(scratch / "code.zip", packages)
    digest = hashlib.sha256(packed.read_bytes()).hexdigest()[:_DIGITS]
    return packed.rename(scratch / f"code-{digest}.zip")


def _results(
    context: Any,
    call: Callable[[str, bytes], bytes],
    arguments: Sequence[bytes],
    stops: Callable[[], bool],
) -> Iterator[bytes]:
    group = f"plimsoll-{uuid.uuid4()}"
    with ThreadPoolExecutor(max(1, len(arguments))) as threads:
        waiting = [threads.submit(call, group, argument) for argument in arguments]
        try:
            for future in waiting:
                if not _ended(future, stops):
                    return
                yield _value(future)
        finally:
            for future in waiting:
                future.cancel()
            context.cancelJobGroup(group)


def _ended(future: "Future[bytes]", stops: Callable[[], bool]) -> bool:
    """Wait for a call; return False where it is to be given up."""
    while not wait([future], _STEP_S).done:
        if stops():
            return False
    return True


def _value(future: "Future[bytes]") -> bytes:
    try:
        return future.result()
    except Exception as exc:  # py4j lets through whatever went wrong in the JVM
        raise lasting_fault(str(exc), NEEDED) or PlimsollError(
            f"Spark's executors could not plan: {first_line(exc)}"
        ) from exc


def _call(context: Any, function: Callable[[bytes], bytes], group: str, argument: bytes) -> bytes:
    """Run one call as a job with one task, in the thread of the caller."""
    context.setJobGroup(group, "plan", interruptOnCancel=True)
    (result,) = context.parallelize([argument], 1).map(function).collect()
    return bytes(result)
