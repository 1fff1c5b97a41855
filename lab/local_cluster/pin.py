"""Pin a Kafka version: `python -m lab.local_cluster.pin 4.3.1`.

Writes its jars with their checksums to `jars.tsv`, and the checkpoint that formats its brokers.
Only for those who develop plimsoll: nothing is resolved at run time.
"""

import hashlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clients.jvm.jars import MAVEN_CENTRAL, JarPin, default_cache_dir, fetch
from clients.jvm.java import find_java
from lab.local_cluster.checkpoint import make
from lab.local_cluster.kafka_versions import PINS, checkpoint_of, set_of

if TYPE_CHECKING:
    from jgo.maven import Artifact, MavenContext

_LOG4J: Final = "2.25.4"
"""For versions that name none; a bridge from Log4j 1 lets all use one configuration."""
_LOG4J_JARS: Final = ("log4j-api", "log4j-core", "log4j-slf4j-impl")
_LOG4J_GROUP: Final = "org.apache.logging.log4j"
_TESTS: Final = ("test", "test-fixtures")
"""Classifiers of the jars with LocalTieredStorage: before 4.4, and from then on."""


def resolve(version: str, folder: Path) -> list["Artifact"]:
    """Kafka's jars with their dependencies, as Maven resolves them; downloads to `folder`.

    Raises RuntimeError for a version that Maven Central does not have, or not with these tests.
    """
    from jgo.maven import MavenContext, PythonResolver

    context = MavenContext(
        resolver=PythonResolver(),
        repo_cache=folder,
        local_repos=[],
        remote_repos={"repository": MAVEN_CENTRAL},
    )
    kafka = context.create_dependency(f"org.apache.kafka:kafka_2.13:{version}")
    _, found = context.resolver.get_dependency_list([kafka])
    jars = [kafka.artifact, *(node.dep.artifact for node in found)]
    logged = {jar.artifactId: jar.version for jar in jars if jar.groupId == _LOG4J_GROUP}
    # Those before 4.1 name no Log4j; those before 4.0 call that of version 1.
    wanted = (*_LOG4J_JARS, "log4j-1.2-api") if not logged else _LOG4J_JARS
    logging = logged.get("log4j-core", _LOG4J)
    more = [_artifact(context, _LOG4J_GROUP, n, logging) for n in wanted if n not in logged]
    return [*jars, *more, *_tests(context, version)]


def _artifact(
    context: "MavenContext", group: str, name: str, version: str, classifier: str = ""
) -> "Artifact":
    return context.project(group, name).at_version(version).artifact(classifier)


def _tests(context: "MavenContext", version: str) -> Iterator["Artifact"]:
    """The jars with LocalTieredStorage and what it needs."""
    for name in ("kafka-storage", "kafka-clients"):
        for classifier in _TESTS:
            jar = _artifact(context, "org.apache.kafka", name, version, classifier)
            try:
                jar.resolve()
            except RuntimeError:
                continue
            yield jar
            break
        else:
            if name == "kafka-storage":
                raise RuntimeError(f"Kafka {version} is not published with LocalTieredStorage")


def pinned(jars: Sequence["Artifact"]) -> list[JarPin]:
    """Pins of these jars, which are downloaded if need be."""
    return [_pin(jar) for jar in jars]


def _pin(jar: "Artifact") -> JarPin:
    content = jar.resolve().read_bytes()
    parts = [jar.groupId, jar.artifactId, jar.version, jar.classifier]
    return JarPin(
        coordinate=":".join(filter(None, parts)),
        size_bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
    )


def with_set(lines: Sequence[str], name: str, pins: Sequence[JarPin]) -> list[str]:
    """The lines of `jars.tsv` with one set replaced, or added as the last."""
    kept = [line for line in lines if line.split("\t")[0] != name]
    return kept + [f"{name}\t{p.coordinate}\t{p.size_bytes}\t{p.sha256}" for p in pins]


def main(version: str) -> None:
    """Write pins and checkpoint of one version."""
    pins = pinned(resolve(version, default_cache_dir() / "maven"))
    lines = with_set(PINS.read_text("utf-8").splitlines(), set_of(version), pins)
    PINS.write_text("\n".join(lines) + "\n", "utf-8")
    jars = fetch(pins, default_cache_dir())
    checkpoint_of(version).write_bytes(make(find_java(), jars))


if __name__ == "__main__":
    main(sys.argv[1])
