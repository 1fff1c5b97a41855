"""Titles in the border of a widget."""

from textual.content import Content
from textual.markup import escape
from textual.widget import Widget


def entitle(widget: Widget, title: str, subtitle: str = "") -> None:
    """Set title and subtitle, as plain text, if they differ.

    Textual repaints the whole widget whenever a title is set, even to the same text,
    which would be most of what is sent over a slow line.
    """
    if _words(widget.border_title) != title:
        widget.border_title = escape(title)
    if _words(widget.border_subtitle) != subtitle:
        widget.border_subtitle = escape(subtitle)


def _words(markup: str | None) -> str:
    return Content.from_markup(markup).plain if markup else ""
