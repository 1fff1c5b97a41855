"""Archives of classes, which a JVM maps instead of reading and verifying each (JEP 310).

They halve the CPU seconds until a broker or Spark is ready. Where there is none, or one that does
not fit, a JVM starts as it would without it.
"""

import hashlib
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from clients.jvm.java import Java

_DUMP_S: Final = 300.0


def archive_path(java: Java, of: str, folder: Path) -> Path:
    """Where the archive for this build of Java belongs.

    of: what its classes are of, as a name and its version.
    Raises OSError where the Java has no modules.
    """
    modules = (java.home / "lib" / "modules").stat()
    build = f"{java.home} {modules.st_size} {modules.st_mtime_ns}"
    digest = hashlib.sha256(build.encode()).hexdigest()[:12]
    return folder / f"{of}-{digest}.jsa"


def archive_flags(java: Java, of: str, folder: Path) -> list[str]:
    """JVM flags that use the archive; none where it has not been made."""
    try:
        archive = archive_path(java, of, folder)
    except OSError:
        return []
    return [f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []


def listing_flag(listed: Path) -> str:
    """The JVM flag that lists the loaded classes in a file; it is whole once the JVM exits."""
    return f"-XX:DumpLoadedClassList={listed}"


def dump_archive(
    java: Java, flags: Sequence[str], class_path: str, listed: Path, archive: Path
) -> None:
    """Make an archive of the listed classes, for JVMs with these flags and this class path.

    Raises subprocess.SubprocessError where the JVM cannot, or takes minutes.
    """
    made = listed.with_suffix(".jsa")
    dump = (f"-XX:SharedClassListFile={listed}", f"-XX:SharedArchiveFile={made}")
    command = [str(java.executable), *flags, "-Xshare:dump", *dump, "-cp", class_path]
    subprocess.run(command, check=True, capture_output=True, timeout=_DUMP_S)
    # JVMs that start meanwhile find the whole of it, or none.
    made.replace(archive)
