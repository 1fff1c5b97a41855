"""Words in the border of a widget."""

from textual.content import Content
from textual.markup import escape
from textual.widget import Widget


def entitle(widget: Widget, title: str, subtitle: str = "") -> None:
    """Write these words, which are no markup, where others stand.

    Textual paints the whole widget anew for each title that is set, also for the same:
    over a slow line that is most of what is sent.
    """
    if _words(widget.border_title) != title:
        widget.border_title = escape(title)
    if _words(widget.border_subtitle) != subtitle:
        widget.border_subtitle = escape(subtitle)


def _words(markup: str | None) -> str:
    return Content.from_markup(markup).plain if markup else ""
