"""`plimsoll topics`: the figures of each topic."""

import json
from pathlib import Path

import pytest

from control.cli.output import Form
from control.render.text import answer_text
from control.render.topics_table import topics_answer, topics_text
from model.goals.goals import Goals
from model.ids import TopicName
from model.names import Names
from model.snapshot.file import read_snapshot
from model.snapshot.replication import Replication
from model.snapshot.topic_skew import topic_skew
from tests.support.model import clusters
from tests.support.paths import FIXTURES
from tests.support.tui.loop_views import no_partitions, skewed


def test_the_figures_are_those_of_the_model() -> None:
    (of,) = topics_answer(skewed(), Goals()).topics
    one = topic_skew(skewed(), TopicName(of.topic))
    assert of.brokers_spread == one.spread
    assert of.brokers_skew == one.brokers_skewed
    assert of.leader_skew == one.leaders_skewed
    assert of.preferred_leaders == one.preferred_leaders
    assert of.even_replicas_per_broker == one.optimum
    assert of.replicas_per_broker == (0, 8)
    assert (of.partitions, of.replicas, of.brokers) == (8, 8, 1)
    assert of.load == {"net_in": 5e6, "net_out": 5e6}


def test_partitions_without_a_leader_and_excluded_topics_are_marked() -> None:
    odd = clusters.snapshot(clusters.brokers(3), [(1, 2), (1, 2), (1, 2)], leaders=[1, 2, -1])
    excluding = Goals(excluded_topics=Names(exact=(clusters.TOPIC,)))
    answer = topics_answer(odd, excluding)
    assert answer.topics[0].offline_partitions == 1
    assert topics_text(answer).splitlines()[1].endswith("excluded, 1 offline")


def test_under_replicated_is_the_share_of_partitions_and_unknown_without_metadata() -> None:
    lacking = Replication(
        under_replicated=2, offline=0, behind_of=((TopicName("orders"), 2), (TopicName("gone"), 1))
    )
    (of,) = topics_answer(skewed(), Goals(), lacking).topics
    assert of.under_replicated == 0.25
    assert topics_text(topics_answer(skewed(), Goals(), lacking)).split("\n")[1].split()[7] == "25%"
    (of,) = topics_answer(skewed(), Goals()).topics
    assert of.under_replicated is None
    whole = Replication(under_replicated=0, offline=0)
    assert topics_answer(skewed(), Goals(), whole).topics[0].under_replicated == 0.0


def test_the_table_has_a_line_for_each_topic() -> None:
    head, line = topics_text(topics_answer(skewed(), Goals())).splitlines()
    assert head.split()[:3] == ["topic", "partitions", "replicas"]
    assert line.split()[:7] == ["orders", "8", "8", "1", "33%", "0%", "0%"]


def test_a_cluster_without_topics_is_described() -> None:
    empty = no_partitions().snapshot
    assert empty is not None
    assert topics_text(topics_answer(empty, Goals())) == "The cluster has no topics.\n"


@pytest.mark.parametrize("file", sorted(FIXTURES.glob("*.json")), ids=lambda file: file.stem)
def test_topics_come_by_name(file: Path) -> None:
    text = answer_text(topics_answer(read_snapshot(file), Goals()), topics_text, Form.JSON)
    names = [topic["topic"] for topic in json.loads(text)["topics"]]
    assert names == sorted(names)
