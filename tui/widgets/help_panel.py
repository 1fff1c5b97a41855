"""Help for the focused panel, and all keys that apply there."""

import re
from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text
from textual.binding import ActiveBinding
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

CODE = re.compile(r"`([^`]*)`")
BOLD, MUTED = Style(bold=True), Style(dim=True)


class HelpPanel(VerticalScroll):
    """Docked at the right; disabled keys show the reason.

    It overlays the screen, so that no table has to be rebuilt for a narrower space.

    Textual's own panel has a widget for each paragraph and rebuilds its table at each
    change of focus, which takes two tenths of a second. It cannot be focused, so that
    only a mouse could scroll it.
    """

    def compose(self) -> Iterator[Widget]:
        self._shown = self._content()
        yield Static(_drawn(*self._shown))

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._follow)

    def _follow(self, _screen: Screen[object]) -> None:
        # Deferred: the focus may not have arrived yet.
        self.call_after_refresh(self._renew)

    def _renew(self) -> None:
        if self.screen.focused is not self and self._shown != (content := self._content()):
            self._shown = content
            self.query_one(Static).update(_drawn(*content))

    def _content(self) -> tuple[str, list[tuple[str, Text]]]:
        """The help text of the focus, and the keys and description of each action.

        The keys of the screen come first, then those that apply everywhere.
        """
        nodes = (self.screen.focused or self.screen).ancestors_with_self
        helps = (n.HELP for n in nodes if isinstance(n, Widget) and n.HELP)
        actions: dict[str, list[ActiveBinding]] = {}
        for found in self.screen.active_bindings.values():
            if not found.binding.system:
                actions.setdefault(found.binding.action, []).append(found)
        here = [same for same in actions.values() if same[0].node is not self.app]
        # What needs no explanation, as the arrows, comes last.
        here.sort(key=lambda same: not (same[0].tooltip or same[0].binding.tooltip))
        everywhere = [same for same in actions.values() if same[0].node is self.app]
        return next(helps, ""), [
            ("", Text("on this screen", BOLD)),
            *((self._keys(same), _description(same[0])) for same in here),
            ("", Text("everywhere", BOLD)),
            *((self._keys(same), _description(same[0])) for same in everywhere),
        ]

    def _keys(self, same: Iterable[ActiveBinding]) -> str:
        names = dict.fromkeys(self.app.get_key_display(f.binding) for f in same)
        return " ".join(names)


def _drawn(help_text: str, keys: Iterable[tuple[str, Text]]) -> Group:
    tables: list[Table] = []
    for names, description in keys:
        if not names:
            tables.append(Table.grid(padding=(0, 1)))
            tables[-1].add_column(justify="right", style=BOLD, no_wrap=True)
        tables[-1].add_row(Text(names), description)
    return Group(*tables[:1], Text(), *_explained(help_text), *tables[1:])


def _description(found: ActiveBinding) -> Text:
    words = found.tooltip or found.binding.tooltip
    name = Text(found.binding.description, style="" if found.enabled else MUTED)
    return name.append(f" {words}" if words else "", MUTED)


def _explained(help_text: str) -> Iterator[RenderableType]:
    """Render Markdown titles, paragraphs and code; nothing else is used."""
    for paragraph in filter(None, help_text.strip().split("\n\n")):
        if paragraph.startswith("## "):
            yield Text(f"{paragraph.removeprefix('## ')}\n", style=BOLD)
        else:
            words = CODE.split(paragraph.replace("\n", " "))
            spans = ((w, BOLD if i % 2 else "") for i, w in enumerate(words))
            yield Text.assemble(*spans, "\n")
