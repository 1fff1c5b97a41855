"""The JMX exporter inside real brokers reports what was produced and consumed."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from clients.connection import Connection
from clients.jvm.jars import default_cache_dir, fetch, read_pins
from collector.metadata import ClusterReader
from collector.probe import Probe
from collector.reports.exporters import Exporters, ExporterSettings
from collector.reports.http import Access, MetricsClient
from collector.reports.merge import complete
from collector.reports.report_columns import FIGURES, PROMETHEUS
from collector.reports.selectors import figures
from collector.spark.vectors import ORIGINS, Window, load_vectors
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan
from lab.local_cluster.tcp_ports import HOST, free_ports

pytestmark = pytest.mark.kafka
PINS = Path(__file__).with_name("jars.tsv")
TOPIC = "scraped.by_topic"
RECORDS, RECORD_BYTES = 2000, 1000
SPAN_S = 10.0
"""The time between two scrapes, on a clock set by the test."""
RULES = {
    1: "{}\n",
    # Named as Strimzi's rules name them.
    2: r"""
lowercaseOutputName: true
rules:
- pattern: kafka.server<type=BrokerTopicMetrics, name=(\w+)PerSec, topic=(.+)><>Count
  name: kafka_server_brokertopicmetrics_$1_total
  type: COUNTER
  labels: {topic: $2}
- pattern: kafka.server<type=BrokerTopicMetrics, name=(\w+)PerSec><>Count
  name: kafka_server_brokertopicmetrics_$1_total
  type: COUNTER
- pattern: kafka.network<.+, name=RequestsPerSec, request=(\w+), (.+)><>Count
  name: kafka_network_requestmetrics_requests_total
  type: COUNTER
  labels: {request: $1, rest: $2}
- pattern: kafka.log<type=Log, name=Size, topic=(.+), partition=(\d+)><>Value
  name: kafka_log_log_size
  type: GAUGE
  labels: {topic: $1, partition: $2}
""",
}


@dataclass(frozen=True)
class Scraped:
    """A cluster, and the page of each broker's exporter."""

    cluster: LocalCluster
    urls: dict[int, str]


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scraped]:
    (agent,) = fetch(read_pins(PINS, "jmx-exporter"), default_cache_dir())
    ports = dict(zip(RULES, free_ports(len(RULES)), strict=True))
    flags = {}
    for broker, rules in RULES.items():
        file = tmp_path_factory.mktemp("rules") / "rules.yaml"
        file.write_text(rules)
        flags[broker] = [f"-javaagent:{agent}={HOST}:{ports[broker]}:{file}"]
    plan = LocalPlan(brokers=len(RULES), tier=False, jvm_flags=flags)
    with LocalCluster(default_cache_dir(), plan) as cluster:
        # Partition 0 is led by broker 1, partition 1 by broker 2.
        cluster.create_topic(TOPIC, [[1, 2], [2, 1]])
        produce(cluster)
        consume(cluster)
        pages = {b: f"http://{HOST}:{port}/metrics" for b, port in ports.items()}
        yield Scraped(cluster, pages)


def produce(cluster: LocalCluster) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    for number in range(RECORDS):
        producer.produce(TOPIC, bytes(RECORD_BYTES), partition=number % 2)
        producer.poll(0)
    assert producer.flush(60) == 0


def consume(cluster: LocalCluster) -> None:
    """Read every record once."""
    reader = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "all"})
    places = [TopicPartition(TOPIC, p, OFFSET_BEGINNING) for p in (0, 1)]
    ends = [reader.get_watermark_offsets(place, timeout=300)[1] for place in places]
    reader.assign(places)
    for _ in range(sum(ends)):
        message = reader.poll(60)
        assert message is not None
        assert message.error() is None
    reader.close()


def exporters(scraped: Scraped, broker: int, preset: str) -> Exporters:
    seconds = iter([0.0, SPAN_S])
    return Exporters(
        ExporterSettings(urls={broker: scraped.urls[broker]}, figures=figures(preset, {})),
        MetricsClient(Access()),
        steady=lambda: next(seconds),
    )


@pytest.mark.parametrize(("broker", "preset"), [(1, "jmx"), (2, "strimzi")])
def test_the_exporter_of_a_broker_gives_the_known_rates(
    scraped: Scraped, broker: int, preset: str
) -> None:
    source = exporters(scraped, broker, preset)
    assert source.read().failures == ()
    produce(scraped.cluster)
    consume(scraped.cluster)
    answer = source.read()
    assert answer.failures == ()
    result = {
        (row["topic"], row["partition"]): {f: row[f] for f in FIGURES}
        for row in answer.reports.to_pylist()
        if row["broker"] == broker
    }
    produced = RECORDS / 2 * RECORD_BYTES / SPAN_S
    of_topic, of_broker = result[TOPIC, -1], result[None, -1]
    # Batches have heads, too; and the broker has its own topics besides.
    assert produced < of_topic["bytes_in"] < 1.05 * produced
    assert produced < of_broker["bytes_in"] < 1.2 * produced
    assert of_broker["replication_in"] > produced
    assert of_topic["bytes_out"] > produced
    assert of_broker["bytes_out"] >= of_topic["bytes_out"]
    assert of_broker["requests"] > 0
    assert of_broker["cpu_cores"] > 0
    for partition in (0, 1):
        size = result[TOPIC, partition]["size_bytes"]
        assert size > 2 * RECORDS / 2 * RECORD_BYTES
        assert math.isnan(result[TOPIC, partition]["bytes_in"])


def test_exporters_complete_what_the_probe_sees(scraped: Scraped) -> None:
    sources = [exporters(scraped, 1, "jmx"), exporters(scraped, 2, "strimzi")]
    connection = Connection(scraped.cluster.bootstrap)
    with ClusterReader(connection) as reader, Probe(connection) as probe:
        samples = [probe.sample(reader.read())]
        for source in sources:
            source.read()
        produce(scraped.cluster)
        consume(scraped.cluster)
        reports = pa.concat_tables([source.read().reports for source in sources])
        samples.append(probe.sample(reader.read()))
    window = Window(window_ms=600_000, fan_out=1.0)
    vectors = load_vectors(pa.concat_tables(samples), window)
    result = complete(vectors, reports, {}).vectors.to_pylist()
    origin = ORIGINS.index(PROMETHEUS)
    for row in result:
        if row["topic"] == TOPIC:
            assert (row["cpu_by"], row["requests_by"]) == (origin, origin)
            assert row["cpu"] > 0
            assert row["requests"] > 0
    for broker in RULES:
        whole = reports.filter((pc.field("broker") == broker) & pc.field("topic").is_null())
        parts = [row["cpu"] for row in result if row["broker"] == broker]
        assert np.nansum(parts) <= whole["cpu_cores"][0].as_py() * (1 + 1e-9)
