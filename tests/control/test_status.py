"""What `plimsoll status` says beside loads."""

import json

import pytest

from collector.brokers.asking import Silence
from control.commands.status import cluster_text
from control.form import Form
from model.goals import Goals
from model.snapshot import Snapshot
from tests.control.parts import MB, cluster
from tests.model import build

SILENCE = Silence(broker=2, since_ms=1_700_000_000_000, reason="no answer within 2 s")
WORDS = (
    "Broker 2 does not answer since 2023-11-14T22:13:20Z (no answer within 2 s); its "
    "partitions keep their last loads for a minute."
)


@pytest.mark.parametrize("form", [Form.TABLE, Form.JSON])
def test_a_silent_broker_is_named_with_the_time(form: Form) -> None:
    state = cluster([1, 2, 3], [MB] * 3)
    text = cluster_text(state, Goals(), form, now_ms=0, silent=[SILENCE])
    if form is Form.JSON:
        assert json.loads(text)["notes"] == [WORDS]
    else:
        assert WORDS in text


@pytest.mark.parametrize("form", [Form.TABLE, Form.JSON])
def test_a_competing_rebalancer_is_named(form: Form) -> None:
    state, words = cluster([1, 2, 3], [MB] * 3), "Cruise Control is here."
    text = cluster_text(state, Goals(), form, now_ms=0, rivals=[words])
    assert words in (json.loads(text)["notes"] if form is Form.JSON else text)


def test_a_placement_in_a_topics_config_is_no_rack_violation() -> None:
    value = '{"version": 1, "replicas": [{"count": 2, "constraints": {"rack": "a"}}]}'
    plain = build.snapshot(build.brokers(4, "aabb"), [(1, 2)])
    (topic,) = plain.header.topics
    for placement, words in ((value, ""), ("{", "of topic orders is ignored")):
        topics = (topic.model_copy(update={"placement": placement}),)
        header = plain.header.model_copy(update={"topics": topics})
        state = Snapshot(header, plain.partitions)
        text = cluster_text(state, Goals(), Form.JSON, now_ms=0)
        assert words in text
        assert json.loads(text)["rack_violations"]["count"] == bool(words)
