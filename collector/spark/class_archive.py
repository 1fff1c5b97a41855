"""The archive of Spark's classes: `python -P -m collector.spark.class_archive` makes it.

It belongs to one installation of PySpark, and lies in the same environment: 180 MB that take
half a minute to a minute of CPU to make.
"""

import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import Final

import psutil
import pyarrow as pa

from clients.jvm.class_archive import archive_flags, archive_path, dump_archive, listing_flag
from clients.jvm.java import Java, find_java
from collector.history.vector_files import VectorFiles
from collector.samples import SAMPLES
from collector.spark.deployment import LOCAL
from collector.spark.session import ARCHIVES, JVM_OPTIONS, Spark, spark_archive, spark_class_path
from collector.spark.stream import Job, LoadStream, SpoolSource
from collector.spark.vectors import Window
from collector.spool import Spool
from model.errors import PlimsollError

_END_S: Final = 120.0
_SAMPLES: Final = 10


def make_archive(java: Java, folder: Path) -> Path:
    """Run the streaming job once, and make an archive of the classes that it has loaded.

    Raises
    ------
    OSError
        The Java has no modules, or the folder cannot be written.
    subprocess.SubprocessError
        The JVM cannot make one, or takes minutes.
    PlimsollError
        Spark does not start, or its job does nothing.
    """
    archive = archive_path(java, spark_archive(), folder)
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        listed = Path(name, "classes")
        options = (listing_flag(listed),)
        spark = Spark(java, master=LOCAL, jvm_options=options, log_file=Path(name, "log"))
        try:
            _run_once(spark, Path(name))
            # The JVM writes the end of the list when it exits by itself.
            jvm = psutil.Process(spark.pid)
            jvm.send_signal(signal.SIGTERM)
            jvm.wait(_END_S)
        finally:
            spark.close()
        dump_archive(java, JVM_OPTIONS, spark_class_path(), listed, archive)
    return archive


def _run_once(spark: Spark, folder: Path) -> None:
    """Load what a stream of samples and a job of the history load."""
    session, done = spark.start(), threading.Event()
    spool = Spool(folder / "spool")
    now_ms = int(1000 * time.time())
    spool.write(pa.Table.from_pylist([_sample(now_ms, n) for n in range(_SAMPLES)], SAMPLES))
    job = Job(
        source=SpoolSource(spool.folder),
        checkpoint=folder / "checkpoint",
        window=Window(window_ms=15_000),
        interval_s=0.1,
    )
    history = VectorFiles(folder / "history", every_ms=1)
    stream = LoadStream(session, job, history, lambda *_: done.set())
    thread = threading.Thread(target=stream.run)
    thread.start()
    came = done.wait(_END_S)
    stream.stop()
    thread.join()
    if not came:
        raise PlimsollError(f"Spark has not processed {_SAMPLES} samples in {_END_S:.0f} s.")
    session.range(_SAMPLES).groupBy("id").count().orderBy("id").collect()


def _sample(now_ms: int, number: int) -> dict[str, object]:
    """A partition as the probe observes it, each second some more of it."""
    figures = [name for name in SAMPLES.names if name not in ("topic", "time_ms")]
    at_ms = now_ms - 1000 * (_SAMPLES - number)
    return {"topic": "orders", "time_ms": at_ms, **dict.fromkeys(figures, 1), "latest": number}


def main() -> int:
    """Make the archive for this machine's Java, unless there is one."""
    java = find_java()
    if not archive_flags(java, spark_archive(), ARCHIVES):
        make_archive(java, ARCHIVES)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
