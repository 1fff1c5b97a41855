"""Inputs and buttons without borders, styled once."""

from typing import TypeVar

from textual.widgets import Button, Input

W = TypeVar("W", Input, Button)


def compact(widget: W) -> W:
    """Make it compact before it is mounted.

    Textual's own argument styles the widget there and then, and once more when it is
    mounted, which takes a third of the time in which a form opens.
    """
    widget.set_reactive(type(widget).compact, True)
    return widget.add_class("-textual-compact", update=False)
