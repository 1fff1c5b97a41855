"""Compacted history: a folder at any URL that Spark reaches."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from collector.history.hours import HOURS
from collector.history.weekly_profile import WEEKS
from model.errors import PlimsollError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class CompactedHistory:
    """Folders `date=YYYY-MM-DD` of the schema `HOURS`, and `weeks` of `WEEKS`.

    A folder counts when Spark has marked it as whole (`_SUCCESS`), which it does last:
    one that was cut off is written again. Raises PlimsollError, naming the URL, where
    it cannot be used.
    """

    def __init__(self, session: "SparkSession", url: str) -> None:
        self.url = url
        self._session = session

    def days(self) -> list[str]:
        """Names, `YYYY-MM-DD`, of the complete days in the store, oldest first."""
        with self._using() as (files, root):
            if not files.exists(root):
                return []
            names = [s.getPath().getName() for s in files.listStatus(root)]
            days = [name for name in names if name.startswith("date=")]
            whole = [n for n in days if files.exists(self._path(f"{n}/_SUCCESS"))]
        return sorted(name.removeprefix("date=") for name in whole)

    def write_day(self, day: str, hours: "DataFrame") -> None:
        """Replace a day's hours, schema `HOURS`; it counts once it is complete."""
        self._write(f"date={day}", hours.sortWithinPartitions(*HOURS.names[:3]))

    def read_days(self, days: Sequence[str]) -> "DataFrame":
        """Read the hours of these days, schema `HOURS`.

        Columns that older files lack are null.
        """
        with self._using():
            reader = self._session.read.schema(spark_type(HOURS))
            return reader.parquet(*(f"{self.url}/date={day}" for day in days))

    def write_weeks(self, weeks: "DataFrame") -> None:
        """Replace the weekly profiles, schema `WEEKS`."""
        self._write("weeks", weeks.sortWithinPartitions(*WEEKS.names[:2]))

    def read_weeks(self, columns: Sequence[str]) -> pa.Table:
        """Read some columns of the weekly profiles, schema `WEEKS`."""
        with self._using():
            frame = self._session.read.parquet(f"{self.url}/weeks").select(*columns)
            return frame.toArrow()

    def prune(self, oldest: str) -> None:
        """Delete days before this one, `YYYY-MM-DD`."""
        with self._using() as (files, _):
            for day in self.days():
                if day < oldest:
                    files.delete(self._path(f"date={day}"), True)

    def _write(self, name: str, frame: "DataFrame") -> None:
        with self._using():
            frame.write.mode("overwrite").parquet(f"{self.url}/{name}")

    def _path(self, name: str = "") -> Any:
        jvm: Any = self._session.sparkContext._jvm  # noqa: SLF001 - Hadoop's files
        return jvm.org.apache.hadoop.fs.Path(f"{self.url}/{name}")

    @contextmanager
    def _using(self) -> Iterator[tuple[Any, Any]]:
        """Yield Hadoop's file system and the root folder in it."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            root = self._path()
            configuration = self._session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
            yield root.getFileSystem(configuration), root
        except (Py4JError, PySparkException, OSError) as exc:
            raise PlimsollError(
                f"The history at {self.url} cannot be used ({reason_of(exc)}). Check "
                "that Spark reaches it, and that it may write there."
            ) from exc


def spark_type(schema: pa.Schema) -> Any:
    """Convert an Arrow schema to a Spark schema (StructType)."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def reason_of(exc: BaseException) -> str:
    """Return the first line of a Java exception's message."""
    java = getattr(exc, "java_exception", None)
    text = str(java) if java is not None else str(exc)
    return text.strip().split("\n", 1)[0]
