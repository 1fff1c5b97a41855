"""Pinned jars: read, fetched, verified, rejected."""

import gc
import hashlib
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from clients.jvm.jars import (
    SPARK_KAFKA_PINS,
    JarPin,
    JarProgress,
    default_cache_dir,
    fetch,
    read_pins,
)
from lab.local_cluster.kafka_versions import kafka_pins, pinned_versions, s3_pins
from lab.local_cluster.tcp_ports import HOST, free_ports
from model.errors import DownloadFailed

# jgo leaves a response that it does not read to the end to the garbage collector.
jgo_leaves_a_socket = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
CONTENT = b"not really a jar " * 100_000


class QuietHandler(SimpleHTTPRequestHandler):
    asked: list[str] = []

    def log_request(self, code: object = "-", size: object = "-") -> None:
        self.asked.append(self.path)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Path]]:
    """A Maven repository on this machine: its address and its folder."""
    monkeypatch.setenv("NO_PROXY", HOST)
    folder = tmp_path / "repository"
    folder.mkdir()
    QuietHandler.asked.clear()
    handler = partial(QuietHandler, directory=str(folder))
    with ThreadingHTTPServer((HOST, 0), handler) as server:
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://{HOST}:{server.server_port}", folder
        server.shutdown()


def pin_of(content: bytes, coordinate: str = "org.example:thing:1.0") -> JarPin:
    return JarPin(
        coordinate=coordinate, size_bytes=len(content), sha256=hashlib.sha256(content).hexdigest()
    )


def publish(folder: Path, file_name: str, content: bytes) -> None:
    target = folder / "org" / "example" / "thing" / "1.0"
    target.mkdir(parents=True, exist_ok=True)
    (target / file_name).write_bytes(content)


def test_the_pins_of_the_product_are_complete() -> None:
    """Every pinned jar has a full checksum and a unique file name."""
    sets = [kafka_pins(), s3_pins(), read_pins(SPARK_KAFKA_PINS, "spark-kafka")]
    assert [len(pins) for pins in sets] == [48, 1, 4]
    sets += [kafka_pins(version) for version in pinned_versions()]
    # Versions may share a jar, but then it is the same one.
    pins = {pin for pins in sets for pin in pins}
    assert all(len(bytes.fromhex(pin.sha256)) == 32 for pin in pins)
    assert len({pin.file_name for pin in pins}) == len(pins)


def test_a_classifier_is_part_of_the_file_name() -> None:
    coordinate = "org.apache.kafka:kafka-storage:4.3.1:test"
    assert pin_of(b"", coordinate).file_name == "kafka-storage-4.3.1-test.jar"


def test_an_unknown_set_of_pins_is_refused() -> None:
    with pytest.raises(KeyError, match="unheard-of"):
        read_pins(SPARK_KAFKA_PINS, "unheard-of")


def test_the_cache_folder_can_be_chosen(tmp_path: Path) -> None:
    assert default_cache_dir({"PLIMSOLL_CACHE_DIR": str(tmp_path)}) == tmp_path
    assert default_cache_dir({}).name == "plimsoll"


def test_a_jar_is_fetched_once_with_progress(repository: tuple[str, Path], tmp_path: Path) -> None:
    """A second call downloads nothing."""
    url, folder = repository
    publish(folder, "thing-1.0.jar", CONTENT)
    news: list[JarProgress] = []
    pins = [pin_of(CONTENT)]
    first = fetch(pins, tmp_path / "cache", news.append, repository=url)
    asked = len(QuietHandler.asked)
    second = fetch(pins, tmp_path / "cache", news.append, repository=url)
    assert first == second == (tmp_path / "cache" / "jars" / "thing-1.0.jar",)
    assert first[0].read_bytes() == CONTENT
    assert len(QuietHandler.asked) == asked > 0
    assert [one.done_bytes for one in news] == sorted({one.done_bytes for one in news})
    assert news[-1].done_bytes == news[-1].total_bytes == len(CONTENT)


def test_a_jar_with_a_classifier_is_fetched(repository: tuple[str, Path], tmp_path: Path) -> None:
    url, folder = repository
    publish(folder, "thing-1.0-test.jar", CONTENT)
    pins = [pin_of(CONTENT, "org.example:thing:1.0:test")]
    (jar,) = fetch(pins, tmp_path, repository=url)
    assert jar.read_bytes() == CONTENT


@pytest.mark.parametrize("served", [CONTENT[:-1] + b"?", CONTENT + b"?"])
def test_a_jar_with_another_checksum_is_refused_and_removed(
    served: bytes, repository: tuple[str, Path], tmp_path: Path
) -> None:
    url, folder = repository
    publish(folder, "thing-1.0.jar", served)
    with pytest.raises(DownloadFailed, match=r"org\.example:thing:1\.0 .*SHA-256"):
        fetch([pin_of(CONTENT)], tmp_path / "cache", repository=url)
    assert list((tmp_path / "cache" / "jars").iterdir()) == []


def test_a_jar_altered_in_the_cache_is_fetched_again(
    repository: tuple[str, Path], tmp_path: Path
) -> None:
    url, folder = repository
    publish(folder, "thing-1.0.jar", CONTENT)
    (jar,) = fetch([pin_of(CONTENT)], tmp_path / "cache", repository=url)
    jar.write_bytes(CONTENT[:-1] + b"?")
    fetch([pin_of(CONTENT)], tmp_path / "cache", repository=url)
    assert jar.read_bytes() == CONTENT


def test_without_network_the_error_says_which_jar_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nothing else is written anywhere."""
    monkeypatch.setenv("NO_PROXY", HOST)
    (port,) = free_ports(1)
    with pytest.raises(DownloadFailed) as caught:
        fetch([pin_of(CONTENT)], tmp_path, repository=f"http://{HOST}:{port}")
    message = str(caught.value)
    assert "org.example:thing:1.0" in message
    assert "Connection refused" in message
    assert "PLIMSOLL_CACHE_DIR" in message
    assert "\n" not in message
    assert capfd.readouterr() == ("", "")


@jgo_leaves_a_socket
def test_an_unpublished_jar_has_its_own_error(repository: tuple[str, Path], tmp_path: Path) -> None:
    url, _folder = repository
    with pytest.raises(DownloadFailed, match="not found"):
        fetch([pin_of(CONTENT)], tmp_path / "cache", repository=url)
    gc.collect()


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DownloadFailed, match=r"file/jars.*PLIMSOLL_CACHE_DIR"):
        fetch([pin_of(CONTENT)], tmp_path / "file")


@jgo_leaves_a_socket
def test_an_observer_that_raises_ends_the_download(
    repository: tuple[str, Path], tmp_path: Path
) -> None:
    """Otherwise a cancelled start would fetch to the end."""
    url, folder = repository
    publish(folder, "thing-1.0.jar", CONTENT)

    def give_up(_news: JarProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch([pin_of(CONTENT)], tmp_path / "cache", give_up, repository=url)
    gc.collect()
    assert list((tmp_path / "cache" / "jars").iterdir()) == []
