"""Changes of dynamic settings, as Kafka makes them (KIP-339)."""

from collections.abc import Mapping, Sequence


def of_keys(values: Mapping[str, str], keys: Sequence[str]) -> dict[str, str]:
    """The values of these keys that are set."""
    return {key: values[key] for key in keys if key in values}


def alter(own: dict[str, str], values: Mapping[str, str | None]) -> None:
    """Set each value, or delete it with None."""
    for key, value in values.items():
        if value is None:
            own.pop(key, None)
        else:
            own[key] = value


def append(own: dict[str, str], lists: Mapping[str, Sequence[str]]) -> None:
    """Append entries to lists, without duplicates."""
    for key, entries in lists.items():
        now = _entries(own, key)
        own[key] = ",".join([*now, *(e for e in entries if e not in now)])


def subtract(own: dict[str, str], lists: Mapping[str, Sequence[str]]) -> None:
    """Remove entries from lists; a list without entries stays set, empty."""
    for key, entries in lists.items():
        if key in own or entries:
            left = [e for e in _entries(own, key) if e not in entries]
            own[key] = ",".join(left)


def _entries(own: Mapping[str, str], key: str) -> list[str]:
    return own[key].split(",") if own.get(key) else []
