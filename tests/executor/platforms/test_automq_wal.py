"""Reading from the bucket whether a source has uploaded its log."""

import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import boto3
import pytest

from clients.s3 import S3Settings
from executor.platforms.automq_wal import LITTLE, AutoMQWal, WalUploads
from executor.platforms.platform import MoveFinding
from executor.timing import Timing
from lab.local_cluster.tcp_ports import HOST
from model.ids import BrokerId, PartitionId, TopicName
from tests.support.executor.plan_builders import ids

CLUSTER = "M3JUlHj3SgKi8yvqWTJ3sg"
TWO = BrokerId(2)
FOLDER = f"C81E728D9D4C2F636F067F89CC14862C/_kafka_{CLUSTER}/2/"
LOG = f"{FOLDER}1795320000000/wal/"
RESERVATION = f"reservation/_kafka_{CLUSTER}/2"
ORDERS_7 = PartitionId(TopicName("orders"), 7)


def elsewhere(endpoint_url: str, bucket: str = "b") -> S3Settings:
    return S3Settings(
        endpoint_url=endpoint_url, bucket=bucket, access_key="me", secret_key="secret"
    )


class Bucket:
    """A bucket of AutoMQ's, with the log of node 2."""

    def __init__(self, endpoint: str, name: str) -> None:
        self.settings = elsewhere(endpoint, name)
        self._client = boto3.client(
            "s3",
            endpoint_url=endpoint,
            aws_access_key_id="me",
            aws_secret_access_key="secret",
            region_name="us-east-1",
        )
        self._client.create_bucket(Bucket=name)
        self.put(RESERVATION, 20)

    def put(self, key: str, size: int) -> None:
        self._client.put_object(Bucket=self.settings.bucket, Key=key, Body=b"x" * size)

    def delete(self, key: str) -> None:
        self._client.delete_object(Bucket=self.settings.bucket, Key=key)


@pytest.fixture
def bucket(endpoint: str, request: pytest.FixtureRequest) -> Bucket:
    name = "".join(c for c in request.node.name.lower() if c.isalnum())
    return Bucket(endpoint, name[:60])


def seen(
    settings: S3Settings, *, within_s: float = 0.3, meanwhile: Callable[[], None] = lambda: None
) -> MoveFinding:
    """The note on one move; `meanwhile` is called during it."""
    uploads = WalUploads(AutoMQWal(settings), Timing(), within_s)
    uploads.begin(CLUSTER, {ORDERS_7: TWO})
    wait(uploads._before.values())
    meanwhile()
    uploads.look(ORDERS_7, CLUSTER, TWO)
    return uploads.seen()[ORDERS_7]


def test_a_nodes_log_is_found_under_the_keys_that_automq_gives_it(bucket: Bucket) -> None:
    bucket.put(f"{LOG}0-67108864", 5)
    bucket.put(f"{FOLDER}1795320009999/wal/67108864-134217728", 7)
    bucket.put(f"{FOLDER}1795320000000/other", 11)
    bucket.put(f"{FOLDER.replace('/2/', '/22/')}1/wal/0-1", 13)
    wal = AutoMQWal(bucket.settings)
    assert sorted(wal.objects(CLUSTER, TWO).values()) == [5, 7]
    assert wal.objects(CLUSTER, BrokerId(22)) == {}
    assert wal.holds(CLUSTER, TWO)


def test_less_than_a_megabyte_left_is_an_uploaded_log(bucket: Bucket) -> None:
    bucket.put(f"{LOG}0-67108864", LITTLE - 1)
    bucket.put(f"{LOG}67108864-134217728", 2 * LITTLE)
    noted = seen(bucket.settings, meanwhile=lambda: bucket.delete(f"{LOG}67108864-134217728"))
    assert noted.note.startswith(
        "under 1 MB of broker 2's write-ahead log from before the move is left: "
        "1.00 MB of 3.00 MB, "
    )
    assert noted.note.endswith(" after it, seen through S3")
    assert noted.detail["wal_bytes_before"] == 3 * LITTLE - 1
    assert noted.detail["wal_bytes_left"] == LITTLE - 1


def test_a_log_that_is_not_uploaded_is_reported(bucket: Bucket) -> None:
    bucket.put(f"{LOG}0-67108864", LITTLE)
    noted = seen(bucket.settings)
    assert noted.note.startswith(
        "1 MB or more of broker 2's write-ahead log from before the move is left: "
        "1.00 MB of 1.00 MB, "
    )
    assert noted.detail["wal_bytes_left"] == LITTLE
    assert noted.detail["after_s"] >= 0.3


def test_an_upload_shortly_after_the_move_is_seen(bucket: Bucket) -> None:
    bucket.put(f"{LOG}0-67108864", 3 * LITTLE)
    pauses = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        bucket.delete(f"{LOG}0-67108864")

    uploads = WalUploads(AutoMQWal(bucket.settings), Timing(pause=pause), 60.0)
    uploads.begin(CLUSTER, {ORDERS_7: TWO})
    uploads.look(ORDERS_7, CLUSTER, TWO)
    assert "is left: 0 B of 3.00 MB, " in uploads.seen()[ORDERS_7].note
    assert len(pauses) == 1


def test_writes_of_other_partitions_do_not_count(bucket: Bucket) -> None:
    bucket.put(f"{LOG}0-67108864", 3 * LITTLE)

    def go_on() -> None:
        bucket.put(f"{LOG}67108864-134217728", 2 * LITTLE)
        bucket.delete(f"{LOG}0-67108864")

    noted = seen(bucket.settings, meanwhile=go_on)
    assert noted.note.startswith("under 1 MB of broker 2's write-ahead log")
    assert "is left: 0 B of 3.00 MB, " in noted.note


def test_a_move_started_by_another_process_is_reported_as_such(bucket: Bucket) -> None:
    uploads = WalUploads(AutoMQWal(bucket.settings), Timing())
    uploads.look(ORDERS_7, CLUSTER, TWO)
    noted = uploads.seen()[ORDERS_7]
    assert noted.note.startswith(
        "whether broker 2 has uploaded its write-ahead log is unknown: another "
        "process started the move"
    )
    assert noted.detail == {"wal_bytes_before": None, "wal_bytes_left": None}


def test_a_bucket_without_the_nodes_log_proves_nothing(bucket: Bucket) -> None:
    bucket.delete(RESERVATION)
    bucket.put(f"{RESERVATION}2", 20)
    noted = seen(bucket.settings)
    assert noted.note == (
        "the write-ahead log cannot be read through S3 (the bucket has no log of broker 2)"
    )


class Answering(BaseHTTPRequestHandler):
    """Answers every request alike."""

    status: int
    body: bytes

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: Any) -> None:
        """Logs nothing."""


@pytest.fixture
def answer(request: pytest.FixtureRequest) -> Iterator[str]:
    status, body = request.param
    handler = type("Handler", (Answering,), {"status": status, "body": body})
    with ThreadingHTTPServer((HOST, 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://{HOST}:{server.server_port}"
        server.shutdown()
        thread.join()


DENIED = b"<Error><Code>AccessDenied</Code><Message>No entry</Message></Error>"


@pytest.mark.parametrize(
    ("answer", "message"),
    [((403, DENIED), "AccessDenied"), ((200, b"hello <"), "(500)")],
    indirect=["answer"],
)
def test_an_endpoint_that_denies_or_is_not_s3_is_a_note(answer: str, message: str) -> None:
    noted = seen(elsewhere(answer))
    assert "cannot be read through S3" in noted.note
    assert message in noted.note
    assert noted.detail["wal_bytes_left"] is None


@pytest.mark.parametrize(
    ("endpoint_url", "message"),
    [(f"http://{HOST}:1", "Could not connect"), ("nowhere", "Invalid endpoint")],
)
def test_an_unreachable_endpoint_is_a_note(endpoint_url: str, message: str) -> None:
    assert message in seen(elsewhere(endpoint_url), within_s=5.0).note


def test_a_silent_endpoint_is_not_waited_for() -> None:
    """It accepts connections and never answers."""
    with closing(socket.create_server((HOST, 0))) as silent:
        _, port = silent.getsockname()
        uploads = WalUploads(AutoMQWal(elsewhere(f"http://{HOST}:{port}")), Timing(), 0.1)
        uploads.prepare()
        uploads.begin(CLUSTER, {ORDERS_7: TWO})
        uploads.look(ORDERS_7, CLUSTER, TWO)
        noted = uploads.seen()[ORDERS_7]
    assert noted.note.endswith("through S3 (no answer in time)")


class Counting(AutoMQWal):
    """Counts how often each node's log is listed."""

    def __init__(self) -> None:
        super().__init__(S3Settings(bucket="none"))
        self.asked: Counter[BrokerId] = Counter()

    def holds(self, cluster_id: str, broker: BrokerId) -> bool:
        del cluster_id, broker
        return True

    def objects(self, cluster_id: str, broker: BrokerId) -> dict[str, int]:
        del cluster_id
        self.asked[broker] += 1
        return {}


def test_moves_that_start_together_share_a_poll_of_their_source() -> None:
    counting = Counting()
    uploads = WalUploads(counting, Timing())
    pids = [PartitionId(TopicName("orders"), i) for i in range(40)]
    sources = dict(zip(pids, ids([1, 2] * 20), strict=True))
    uploads.begin(CLUSTER, sources)
    wait(uploads._before.values())
    assert counting.asked == {BrokerId(1): 1, TWO: 1}
    for pid, source in sources.items():
        uploads.look(pid, CLUSTER, source)
    assert set(uploads.seen()) == set(pids)
