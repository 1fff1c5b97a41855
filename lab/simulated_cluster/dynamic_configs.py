"""Dynamic settings of a broker, of all brokers or of a topic, changed as Kafka does."""

from collections.abc import Mapping, Sequence


def of_keys(values: Mapping[str, str], keys: Sequence[str]) -> dict[str, str]:
    """Those of these keys that are set."""
    return {key: values[key] for key in keys if key in values}


def alter(own: dict[str, str], values: Mapping[str, str | None]) -> None:
    """Set each value, or with None take it away."""
    for key, value in values.items():
        if value is None:
            own.pop(key, None)
        else:
            own[key] = value


def append(own: dict[str, str], lists: Mapping[str, Sequence[str]]) -> None:
    """Entries that are there already are not added again."""
    for key, entries in lists.items():
        now = _entries(own, key)
        own[key] = ",".join([*now, *(e for e in entries if e not in now)])


def subtract(own: dict[str, str], lists: Mapping[str, Sequence[str]]) -> None:
    """A list stays set, to nothing, when its last entry goes."""
    for key, entries in lists.items():
        if key in own or entries:
            left = [e for e in _entries(own, key) if e not in entries]
            own[key] = ",".join(left)


def _entries(own: Mapping[str, str], key: str) -> list[str]:
    return own[key].split(",") if own.get(key) else []
