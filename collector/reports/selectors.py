"""Which of Prometheus' series hold which figure: selectors, and presets of them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from model.errors import ConfigError

_PAIR: Final = r'([A-Za-z_]\w*)\s*=\s*"([^"\\]*)"'
_SELECTOR: Final = re.compile(
    rf"\s*(rate\s*\(\s*)?([A-Za-z_:][\w:]*)\s*"
    rf"(?:\{{((?:\s*{_PAIR}\s*,)*(?:\s*{_PAIR})?\s*)\}}\s*)?(\)\s*)?",
    re.ASCII,
)
_PAIRS: Final = re.compile(_PAIR, re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Series of one name, some of whose labels have a given value."""

    name: str
    labels: Mapping[str, str]
    """Empty text: the series has no such label, as in PromQL."""
    counter: bool
    """Whether it only grows, so that its increase per second is the figure."""

    def takes(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether a series has this name and all labels of the selector."""
        return name == self.name and all(
            labels.get(label, "") == value for label, value in self.labels.items()
        )

    def __str__(self) -> str:
        pairs = ",".join(f'{label}="{value}"' for label, value in self.labels.items())
        return self.name + (f"{{{pairs}}}" if pairs else "")


Figures = Mapping[str, tuple[Selector, ...]]
"""By figure of `REPORTS`: its selectors. What they give for one place is summed."""


def selector(text: str) -> Selector:
    """Parse `NAME{label="value"}`, or `rate(...)` of it for a counter.

    Raises ConfigError for any other text.
    """
    found = _SELECTOR.fullmatch(text)
    if found is None or (found[1] is None) != (found[8] is None):
        raise ConfigError(
            f'{text!r} is not a series; use NAME, or NAME{{label="value"}}, or '
            "rate(NAME) of a counter"
        )
    return Selector(
        name=found[2], labels=dict(_PAIRS.findall(found[3] or "")), counter=found[1] is not None
    )


def figures(preset: str, own: Mapping[str, tuple[str, ...]]) -> Figures:
    """Return a preset's selectors, replaced by the operator's `own` for the figures there.

    preset: a key of `PRESETS`, else KeyError. own: texts as `selector` takes them, by figure.
    A figure with none is omitted. Raises ConfigError for an invalid selector.
    """
    chosen = {**PRESETS[preset], **own}
    return {
        figure: tuple(selector(text) for text in texts) for figure, texts in chosen.items() if texts
    }


_CPU: Final = "rate(process_cpu_seconds_total)"
# A log that is copied to another directory of its broker (is-future) counts once.
PRESETS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "jmx": {
        "bytes_in": ('rate(kafka_server_BrokerTopicMetrics_Count{name="BytesInPerSec"})',),
        "bytes_out": ('rate(kafka_server_BrokerTopicMetrics_Count{name="BytesOutPerSec"})',),
        "size_bytes": ('kafka_log_Log_Value{name="Size",is_future=""}',),
        "requests": tuple(
            f'rate(kafka_network_RequestMetrics_Count{{name="RequestsPerSec",request="{request}"}})'
            for request in ("Produce", "FetchConsumer")
        ),
        "cpu_cores": (_CPU,),
        "replication_in": (
            'rate(kafka_server_BrokerTopicMetrics_Count{name="ReplicationBytesInPerSec"})',
        ),
    },
    "strimzi": {
        "bytes_in": ("rate(kafka_server_brokertopicmetrics_bytesin_total)",),
        "bytes_out": ("rate(kafka_server_brokertopicmetrics_bytesout_total)",),
        "size_bytes": ('kafka_log_log_size{is_future=""}',),
        "requests": tuple(
            f'rate(kafka_network_requestmetrics_requests_total{{request="{request}"}})'
            for request in ("Produce", "FetchConsumer")
        ),
        "cpu_cores": (_CPU,),
        "replication_in": ("rate(kafka_server_brokertopicmetrics_replicationbytesin_total)",),
    },
    # Its JMX rules (automq jmx/rules/broker.yaml); it has no followers.
    "automq": {
        "bytes_in": (
            'rate(kafka_network_io_bytes_total{direction="in"})',
            'rate(kafka_broker_network_io_bytes_total{direction="in"})',
        ),
        "bytes_out": (
            'rate(kafka_network_io_bytes_total{direction="out"})',
            'rate(kafka_broker_network_io_bytes_total{direction="out"})',
        ),
        "requests": tuple(
            f'rate(kafka_request_count_total{{type="{request}"}})'
            for request in ("Produce", "FetchConsumer")
        ),
        "cpu_cores": ("rate(jvm_cpu_time_seconds_total)",),
    },
}
"""By name of the preset and figure: what the series are called.

`jmx` is the JMX exporter's naming without rules; `strimzi` that of the rules in
Strimzi's examples; `automq` that of AutoMQ's own exporter. Counters are preferred to
Kafka's one-minute rates, which lag by minutes.
"""
