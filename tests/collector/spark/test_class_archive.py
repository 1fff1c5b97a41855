"""The archive of Spark's classes: its JVM takes almost all of them from it."""

from pathlib import Path

import pytest

from clients.jvm.class_archive import archive_flags
from clients.jvm.java import find_java
from collector.spark.class_archive import main
from collector.spark.session import ARCHIVES, Spark, spark_archive

pytestmark = pytest.mark.spark


def test_spark_takes_its_classes_from_an_archive_once_it_is_made(tmp_path: Path) -> None:
    assert main() == 0
    java, loaded = find_java(), tmp_path / "loaded"
    flags = archive_flags(java, spark_archive(), ARCHIVES)
    assert len(flags) == 1
    assert not [path for path in ARCHIVES.iterdir() if path.suffix != ".jsa"]
    log = f"-Xlog:class+load:file={loaded}"
    spark = Spark(
        java, master="local[1]", jvm_options=[*flags, log], log_file=tmp_path / "spark.log"
    )
    try:
        assert spark.start().range(9).groupBy("id").count().count() == 9
    finally:
        spark.close()
    lines = loaded.read_text("utf-8").splitlines()
    shared = [line for line in lines if "source: shared objects file" in line]
    from_jars = [line for line in lines if "source: file:" in line]
    # Others are made while it runs, such as lambdas and generated code.
    assert len(shared) > 5000
    assert len(from_jars) < 0.1 * len(shared)
    assert archive_flags(java, spark_archive(), tmp_path) == []
