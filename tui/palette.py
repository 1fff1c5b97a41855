"""The command palette's entries: every action that a key triggers here."""

import functools
from collections.abc import Iterator
from typing import Any

from textual.app import SystemCommand
from textual.screen import Screen


def commands(screen: Screen[Any]) -> Iterator[SystemCommand]:
    """Return a command for each enabled key binding with a description."""
    for found in screen.active_bindings.values():
        binding = found.binding
        if found.enabled and binding.tooltip and not binding.system:
            key = screen.app.get_key_display(binding)
            callback = functools.partial(screen.app.run_action, binding.action, found.node)
            words = f"{key}  {binding.tooltip}"
            yield SystemCommand(binding.description, words, callback)
