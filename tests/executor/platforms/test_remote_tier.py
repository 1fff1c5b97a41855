"""Segments are found in S3 under the names that Kafka gives them."""

import boto3
import pytest

from clients.s3 import S3Settings
from executor.platforms.remote_tier import RemoteTier, kafka_text
from lab.local_cluster.tcp_ports import HOST
from model.ids import PartitionId, TopicName

TOPIC_ID = "efb026ca-bf55-4357-9c8d-632ec532ec1b"
ORDERS_7 = PartitionId(TopicName("orders"), 7)
FOLDER = "orders-7-77Amyr9VQ1ecjWMuxTLsGw/"
AIVEN = "orders-77Amyr9VQ1ecjWMuxTLsGw/"


def settings(endpoint: str, prefix: str = "") -> S3Settings:
    return S3Settings(
        endpoint_url=endpoint, bucket="tier", prefix=prefix, access_key="me", secret_key="secret"
    )


@pytest.fixture
def bucket(endpoint: str) -> None:
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id="me",
        aws_secret_access_key="secret",
        region_name="us-east-1",
    )
    client.create_bucket(Bucket="tier")
    for key, size in [
        (f"{FOLDER}00000000000000000000-a.log", 1000),
        (f"{FOLDER}00000000000000000989-b.log", 500),
        (f"{FOLDER}00000000000000000989-b.index", 50),
        ("orders-70-77Amyr9VQ1ecjWMuxTLsGw/0-c.log", 7),
        (f"far/away/{FOLDER}0-d.log", 3),
        (f"{AIVEN}7/00000000000000000000-e.log", 40),
        (f"{AIVEN}7/00000000000000000000-e.indexes", 4),
        (f"{AIVEN}7/00000000000000000000-e.rsm-manifest", 4),
        (f"{AIVEN}70/00000000000000000000-f.log", 5),
        (f"{AIVEN}8/00000000000000000000-g.log", 60),
        (f"{AIVEN}8/00000000000000000123-h.log", 6),
        (f"{AIVEN}8/00000000000000000123-h.rsm-manifest", 6),
    ]:
        client.put_object(Bucket="tier", Key=key, Body=b"x" * size)


def test_a_topic_id_is_formatted_as_kafka_does() -> None:
    assert kafka_text(TOPIC_ID) == "77Amyr9VQ1ecjWMuxTLsGw"


@pytest.mark.usefixtures("bucket")
def test_only_this_partitions_segments_are_counted(endpoint: str) -> None:
    seen = RemoteTier(settings(endpoint)).listing(ORDERS_7, TOPIC_ID)
    assert seen.detail == {"tier_segments": 2, "tier_bytes": 1500}
    assert seen.note == "in the tier, seen through S3: 2 segments, 1.50 kB"


@pytest.mark.usefixtures("bucket")
def test_segments_that_aivens_plug_in_has_uploaded_are_counted(endpoint: str) -> None:
    """`<prefix><topic>-<topic id>/<partition>/<base offset>-<segment id>.log`."""
    orders_8 = PartitionId(TopicName("orders"), 8)
    seen = RemoteTier(settings(endpoint)).listing(orders_8, TOPIC_ID)
    assert seen.detail == {"tier_segments": 2, "tier_bytes": 66}
    assert "in the tier, seen through S3: 2 segments" in seen.note


@pytest.mark.usefixtures("bucket")
def test_both_naming_schemes_are_named_if_nothing_is_found(endpoint: str) -> None:
    orders_9 = PartitionId(TopicName("orders"), 9)
    seen = RemoteTier(settings(endpoint)).listing(orders_9, TOPIC_ID)
    assert seen.detail["tier_segments"] == 0
    assert "names that LocalTieredStorage and Aiven's plug-in give them" in seen.note


@pytest.mark.usefixtures("bucket")
def test_the_prefix_precedes_the_key(endpoint: str) -> None:
    seen = RemoteTier(settings(endpoint, "far/away/")).listing(ORDERS_7, TOPIC_ID)
    assert seen.detail == {"tier_segments": 1, "tier_bytes": 3}


@pytest.mark.parametrize("endpoint", [f"http://{HOST}:1", "nowhere"])
def test_an_unreadable_tier_is_a_note_and_not_an_error(endpoint: str) -> None:
    seen = RemoteTier(settings(endpoint)).listing(ORDERS_7, TOPIC_ID)
    assert seen.detail["tier_segments"] is None
    assert "cannot be read through S3" in seen.note


def test_the_secret_is_not_in_the_settings_text(endpoint: str) -> None:
    assert "secret" not in repr(settings(endpoint)).replace("secret_key", "")
