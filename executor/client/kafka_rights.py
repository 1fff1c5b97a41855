"""Missing rights that the driver does not raise."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafka import KafkaAdminClient


def permitted(topics: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Topics as described; those without the right to see them would be empty."""
    raise_unauthorized(topic["error_code"] for topic in topics)
    return topics


def raise_unauthorized(codes: Iterable[int]) -> None:
    """Raise kafka-python's AuthorizationError if one of these error codes is such."""
    from kafka.errors import AuthorizationError, for_code

    for code in codes:
        error = for_code(code)
        if issubclass(error, AuthorizationError):
            raise error()


def watch_settings(client: "KafkaAdminClient") -> None:
    """Have it raise what it takes for settings without values, or gives as text."""
    altered = client._alter_configs_process_responses  # noqa: SLF001 - no other way
    described = client._describe_configs_process_responses  # noqa: SLF001 - as above

    def alter(rows: Sequence[Any]) -> Any:
        raise_unauthorized(row.error_code for row in rows)
        return altered(rows)

    def describe(answers: Sequence[Any], which: str) -> Any:
        raise_unauthorized(row.error_code for a in answers for row in a.results)
        return described(answers, which)

    client._alter_configs_process_responses = alter  # noqa: SLF001 - as above
    client._describe_configs_process_responses = describe  # noqa: SLF001 - as above
