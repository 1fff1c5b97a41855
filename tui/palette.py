"""What the palette offers beside Textual's own: what keys do here and now."""

import functools
from collections.abc import Iterator
from typing import Any

from textual.app import SystemCommand
from textual.screen import Screen


def commands(screen: Screen[Any]) -> Iterator[SystemCommand]:
    """One for each thing that some key asks for; none for what is refused."""
    for found in screen.active_bindings.values():
        binding = found.binding
        if found.enabled and binding.tooltip and not binding.system:
            key = screen.app.get_key_display(binding)
            callback = functools.partial(
                screen.app.run_action, binding.action, found.node
            )
            words = f"{key}  {binding.tooltip}"
            yield SystemCommand(binding.description, words, callback)
