"""One bucket of a real server: conditional writes and error messages."""

import pytest

from clients.s3 import Bucket, S3Settings
from lab.local_cluster.tcp_ports import HOST, free_ports
from model.errors import ArchiveUnreachable, ConfigError, PlimsollError, RightsMissing
from tests.support.executor.fake_platform import FakeTime
from tests.support.executor.s3_server import Fault, Host, place


@pytest.fixture
def host(endpoint: str) -> Host:
    store = place(endpoint)
    return Host(store, FakeTime().timing, "a")


def test_an_object_is_created_only_once(host: Host) -> None:
    assert host.bucket.get("x") is None
    etag = host.bucket.put_new("x", b"mine")
    assert host.bucket.put_new("x", b"theirs") is None
    result = host.bucket.get("x")
    assert result is not None
    assert (result.body, result.etag) == (b"mine", etag)


def test_an_object_is_replaced_only_if_unchanged(host: Host) -> None:
    first = host.bucket.put_new("x", b"1")
    assert first is not None
    second = host.bucket.put_over("x", b"2", first)
    assert second is not None
    assert host.bucket.put_over("x", b"3", first) is None
    assert host.bucket.put_over("y", b"3", second) is None
    assert host.bucket.put_over("x", b"3", second) is not None


def test_names_are_listed_in_order_and_without_the_prefix(host: Host) -> None:
    for key in ("a/2/y", "a/2/x", "a/1/z", "b/1/x", "a/top"):
        host.bucket.put_new(key, b"123")
    assert host.bucket.folders("a/") == ["1", "2"]
    assert host.bucket.sizes("a/") == {"1/z": 3, "2/x": 3, "2/y": 3, "top": 3}
    assert list(host.bucket.sizes("a/", after="2")) == ["2/x", "2/y", "top"]


def test_a_repeated_write_recognises_that_the_lost_answer_succeeded(host: Host) -> None:
    host.wire.fault = {0: Fault.ANSWER_LOST}.get
    with pytest.raises(ArchiveUnreachable):
        host.bucket.put_new("x", b"mine")
    assert host.bucket.put_new("x", b"mine") is not None


def test_two_conflicting_writes_are_repeated(host: Host) -> None:
    host.wire.fault = {0: Fault.CONFLICT, 1: Fault.CONFLICT}.get
    assert host.bucket.put_new("x", b"mine") is not None
    host.wire.fault = lambda _: Fault.CONFLICT
    with pytest.raises(ArchiveUnreachable, match="Other writers keep changing s3://archive/"):
        host.bucket.put_new("y", b"mine")


def test_missing_rights_are_named(host: Host) -> None:
    host.wire.fault = lambda _: Fault.DENIED
    with pytest.raises(RightsMissing, match="s3:ListBucket on the bucket, s3:GetObj"):
        host.bucket.get("x")


def at(endpoint: str | None, bucket: str = "archive") -> S3Settings:
    return S3Settings(endpoint_url=endpoint, bucket=bucket, access_key="me", secret_key="secret")


@pytest.mark.parametrize(
    ("url", "bucket", "error", "message"),
    [
        ("{here}", "another", ConfigError, "bucket does not exist"),
        ("{here}", "not a bucket", ConfigError, "Invalid bucket name"),
        ("nowhere", "archive", ConfigError, "Invalid endpoint: nowhere"),
        ("http://{nobody}", "archive", ArchiveUnreachable, "Could not connect"),
    ],
)
def test_a_bucket_that_cannot_be_used_is_named(
    endpoint: str, url: str, bucket: str, error: type[PlimsollError], message: str
) -> None:
    (port,) = free_ports(1)
    settings = at(url.format(here=endpoint, nobody=f"{HOST}:{port}"), bucket)
    result = Bucket(settings)
    for call in (
        lambda: result.get("x"),
        lambda: result.put_new("x", b""),
        lambda: result.put_over("x", b"", '"0"'),
        lambda: result.folders(""),
        lambda: result.sizes(""),
    ):
        with pytest.raises(error, match=f"^Cannot .* s3://{bucket}/.*{message}"):
            call()
