"""Key bindings redefined by the user, by binding id."""

import unicodedata
from collections.abc import Iterator, Mapping

from textual.binding import Binding
from textual.dom import DOMNode
from textual.keys import Keys

from model.errors import ConfigError
from model.exchange.text_files import nearest

CHANGING = frozenset(
    {
        *("plan.approve", "auto.approve", "run.stop", "run.pause", "run.throttle"),
        *("run.resume", "run.rollback", "history.rollback"),
        *("tasks.resume", "tasks.cancel"),
    }
)
"""Bindings that change the cluster and must not be triggered by accident."""


def known_bindings() -> dict[str, Binding]:
    """Return the bindings of app, screens and panels by id."""
    return {
        binding.id: binding
        for node in _own_nodes(DOMNode)
        for binding in _bindings(node, {})
        if binding.id is not None
    }


def checked_keys(keys: Mapping[str, str]) -> Mapping[str, str]:
    """Check the configured keys; return them as Textual's keymap.

    Raises
    ------
    ConfigError
        An id or key is unknown, two actions share a key, or a key that changes the
        cluster is easily typed by accident.
    """
    known = known_bindings()
    for name, value in keys.items():
        if name not in known:
            raise ConfigError(f"[keys]: unknown id {name!r}{nearest(name, known)}")
        for key in value.split(","):
            _check_key(name, key.strip())
    for node in _own_nodes(DOMNode):
        _check_clash(node, keys)
    return keys


def _check_key(name: str, key: str) -> None:
    last = key if len(key) == 1 else key.rpartition("+")[2]
    if not _is_key(last):
        raise ConfigError(
            f"[keys]: {name} = {key!r} is not a key; write x, X, ctrl+x, f5 or "
            "question_mark, for example"
        )
    if name in CHANGING and len(key) == 1 and not key.isupper():
        raise ConfigError(
            f"[keys]: {name} changes the cluster, and {key!r} is easily typed by "
            f"accident; use {key.upper()!r} or 'ctrl+{key}'"
        )


def _check_clash(node: type[DOMNode], keys: Mapping[str, str]) -> None:
    """Raise ConfigError if two actions of one widget share a key."""
    taken: dict[str, str] = {}
    for binding in Binding.make_bindings(_bindings(node, keys)):
        name = binding.id or binding.action
        other = taken.setdefault(binding.key, name)
        if other != name and {name, other} & set(keys):
            raise ConfigError(f"[keys]: {name} and {other} are both {binding.key!r}; change one")


def _bindings(node: type[DOMNode], keys: Mapping[str, str]) -> Iterator[Binding]:
    for binding in node.__dict__.get("BINDINGS", ()):
        if isinstance(binding, Binding):
            yield binding.with_key(keys.get(binding.id or "", binding.key))


def _is_key(name: str) -> bool:
    if len(name) == 1 or name in {key.value for key in Keys}:
        return True
    try:
        return bool(unicodedata.lookup(name.replace("_", " ")))
    except KeyError:
        return False


def _own_nodes(node: type[DOMNode]) -> Iterator[type[DOMNode]]:
    if node.__module__.startswith("tui."):
        yield node
    for child in node.__subclasses__():
        yield from _own_nodes(child)
