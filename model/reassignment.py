"""The stock tools' reassignment JSON (`kafka-reassign-partitions`, version 1)."""

from typing import Any

from model.plan import Plan


def reassignment(plan: Plan) -> dict[str, Any]:
    """What `--reassignment-json-file` takes to carry out the plan."""
    return _document([(m.topic, m.partition, m.replicas_after) for m in plan.moves])


def rollback(plan: Plan) -> dict[str, Any]:
    """The twin that brings the old assignment back."""
    return _document([(m.topic, m.partition, m.replicas_before) for m in plan.moves])


def _document(rows: list[tuple[str, int, tuple[int, ...]]]) -> dict[str, Any]:
    return {
        "version": 1,
        "partitions": [
            {"topic": topic, "partition": partition, "replicas": list(replicas)}
            for topic, partition, replicas in sorted(rows)
        ],
    }
