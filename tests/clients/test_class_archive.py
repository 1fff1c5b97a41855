"""Where an archive of classes belongs, and which flags use it."""

from pathlib import Path

from clients.jvm.class_archive import archive_flags, archive_path
from clients.jvm.java import Java


def test_an_archive_is_of_one_build_of_java(tmp_path: Path) -> None:
    java = Java(home=tmp_path, executable=tmp_path / "java", version=17, bundled=False)
    assert archive_flags(java, "kafka-4.1.1", tmp_path) == []
    modules = tmp_path / "lib" / "modules"
    modules.parent.mkdir()
    archives = []
    for size in (1, 2):
        modules.write_bytes(bytes(size))
        archives.append(archive_path(java, "kafka-4.1.1", tmp_path))
        assert archive_flags(java, "kafka-4.1.1", tmp_path) == []
        archives[-1].touch()
        assert archive_flags(java, "kafka-4.1.1", tmp_path) == [
            f"-XX:SharedArchiveFile={archives[-1]}"
        ]
    assert len({*archives, archive_path(java, "kafka-4.0.0", tmp_path)}) == 3
