import stat
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import BaseModel

from model.errors import ConfigError
from model.snapshot.forecast import LoadForecast, SlotReason
from model.snapshot.pseudonyms import KEPT, Pseudonyms, own_key, read_key
from model.snapshot.snapshot import Broker, LogDir, RecentMove, SnapshotHeader, Source, Topic
from tests.support.model.clusters import brokers, ids, snapshot

FIELDS: Mapping[type[BaseModel], str] = {
    SnapshotHeader: "cluster_id taken_at_ms brokers topics resources slots forecast"
    " sources recent_moves racks_unknown",
    Broker: "id rack state capacity capacity_from log_dirs",
    LogDir: "path capacity_bytes cordoned failed",
    Topic: "name topic_id storage internal placement",
    Source: "name newest_sample_ms window_s samples measured_share",
    LoadForecast: "method time_zone days held_back_days missed missed_as_now partitions"
    " as_now slots unused",
    SlotReason: "name begins_ms why topic",
    RecentMove: "topic partition left leader_left at_ms",
}
KEY = b"a key of 16 bytes or more"


def test_a_name_has_one_pseudonym_under_one_key() -> None:
    """The golden one is openssl's: printf 'topic\\0orders' | openssl dgst -hmac ..."""
    name = Pseudonyms(KEY).topic("orders")
    assert name == Pseudonyms(KEY).topic("orders") == "topic-aedd25ed35d40b9b"
    assert name != Pseudonyms(KEY[1:]).topic("orders")
    assert name != Pseudonyms(KEY).topic("orders2")


def test_only_kafkas_own_topics_keep_their_names() -> None:
    names = Pseudonyms(KEY)
    assert names.topic("__consumer_offsets") == "__consumer_offsets"
    assert names.topic("__acme_secrets").startswith("topic-")
    assert all(name.startswith("__") for name in KEPT)


def test_brokers_of_one_rack_stay_together_and_placement_stays() -> None:
    plain = snapshot(brokers(4, "abab"), [(1, 2), (3, 4), (2, 3)])
    hidden = Pseudonyms(KEY).snapshot(plain)
    first, second, third, fourth = (b.rack for b in hidden.header.brokers)
    assert first == third != second == fourth
    assert [hidden.replicas(row) for row in range(3)] == [ids(1, 2), ids(3, 4), ids(2, 3)]
    assert hidden.partitions.loads.tolist() == plain.partitions.loads.tolist()


def test_every_field_of_a_snapshot_is_checked_for_names() -> None:
    """A new field must be replaced in `Pseudonyms`, or be known to contain no name."""
    assert {m.__name__: set(m.model_fields) for m in FIELDS} == {
        m.__name__: set(known.split()) for m, known in FIELDS.items()
    }


def test_a_key_is_created_once_and_readable_only_by_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "state" / "anonymise.key"
    key = own_key(path)
    assert own_key(path) == read_key(path) == key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert own_key(tmp_path / "other.key") != key


def test_an_unusable_key_is_named(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"secret\n")
    with pytest.raises(ConfigError, match=r"short has 7 bytes; it needs 16 or more"):
        read_key(tmp_path / "short")
    with pytest.raises(ConfigError, match=r"cannot read the key .*none: No such file"):
        read_key(tmp_path / "none")
    with pytest.raises(ConfigError, match=r"cannot read the key .*Not a directory"):
        own_key(tmp_path / "short" / "key")
