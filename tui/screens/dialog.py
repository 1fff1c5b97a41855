"""Dialogs whose request can be refused: they stay open and show the reason."""

import asyncio
import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Final

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Input, Label, Static

from model.errors import PlimsollError
from tui.screens.too_small import Covered
from tui.widgets.compact import compact

LONG_TITLE: Final = 50
"""Characters from which a title is wrapped."""
LABEL: Final = re.compile(r"^[^:\n]{1,30}:(?= )", re.MULTILINE)
UNREAD: Final = "▼ more below: page down"


def title_classes(title: str) -> str:
    """Classes of the label of a title, which is wrapped where it would be cut."""
    return "title -long" if len(title) > LONG_TITLE else "title"


def labelled(text: str) -> Content:
    """The text with bold labels: what is before the colon of each line, if it is short."""
    shown = Content(text)
    for label in LABEL.finditer(text):
        shown = shown.stylize("bold", label.start(), label.end())
    return shown


class Dialog(Covered[None]):
    """A dialog with the buttons `yes` and `no` and the message line `refused`."""

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "no":
            self.dismiss()
        elif not self.is_covered:
            self.send()

    def action_no(self) -> None:
        self.dismiss()

    @abstractmethod
    def send(self) -> None:
        """Send the request."""

    async def attempt(
        self, act: Callable[[], None], text: Callable[[PlimsollError], str] = str
    ) -> bool:
        """Call `act` in a thread, then close; or show the error and return False."""
        try:
            # Off the event loop: the loop may hold its lock for a moment.
            await asyncio.to_thread(act)
        except PlimsollError as exc:
            if self.is_current:
                self.say(text(exc))
            else:
                self.app.notify(text(exc), severity="error", markup=False)
            return False
        # If the user has closed it in the meantime, another screen is current.
        if self.is_current:
            self.dismiss()
        return True

    def say(self, message: str) -> None:
        """Show a message, or hide the line if it is empty."""
        refused = self.query_one("#refused", Static)
        refused.update(message)
        refused.display = bool(message)
        self.show_focus()


class NamedDialog(Dialog):
    """A dialog that acts only once the cluster's name is typed and all of it was shown.

    Where its texts do not fit, they scroll beside the field, and nothing is accepted
    before their end was visible.
    """

    AUTO_FOCUS = "#name"
    BINDINGS = [
        Binding(
            "pagedown,down",
            "read(1)",
            "Read on",
            tooltip="Scroll down in the text above the field",
            show=False,
            id="dialog.down",
        ),
        Binding(
            "pageup,up",
            "read(-1)",
            "Read back",
            tooltip="Scroll up in the text above the field",
            show=False,
            id="dialog.up",
        ),
    ]

    def __init__(
        self,
        cluster_name: str,
        act: Callable[[], None],
        *,
        title: str,
        texts: Sequence[str],
        aim: str,
        yes: str,
        refused: str,
    ) -> None:
        """Call `act`, which may raise PlimsollError, in another thread.

        aim: what typing the name does. yes: the button's label. refused: the words
        before the reason.
        """
        super().__init__()
        self._cluster_name, self._act = cluster_name, act
        self._title, self._texts = title, texts
        self._aim, self._yes, self._refused = aim, yes, refused
        self._sent = False
        self._read_to = 0
        """Lines of the texts that were visible so far, from their start."""

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog named"):
            yield Label(self._title, classes=title_classes(self._title), markup=False)
            with VerticalScroll(id="texts", can_focus=False):
                yield Static(id="refused", markup=False)
                yield from self.first()
                for text in self._texts:
                    yield Static(labelled(text))
            yield Static(UNREAD, id="unread", markup=False)
            # Not a label, which would cut the name instead of wrapping it.
            yield Static(
                f"Type the cluster's name to {self._aim}, then Enter: {self._cluster_name}",
                markup=False,
            )
            yield compact(Input(id="name", placeholder="the cluster's name"))
            with Horizontal(classes="buttons"):
                yield compact(Button("Cancel", id="no", variant="primary"))
                yield compact(Button(self._yes, id="yes", variant="warning", disabled=True))

    def first(self) -> ComposeResult:
        """Widgets above the texts."""
        yield from ()

    def on_mount(self) -> None:
        for moved in ("scroll_y", "virtual_size"):
            self.watch(self.query_one("#texts"), moved, self.measure)

    def on_resize(self) -> None:
        self.measure()

    def say(self, message: str) -> None:
        super().say(message)
        self.query_one("#texts").scroll_home(animate=False)
        self.measure()

    # ---- the texts

    def measure(self) -> None:
        """Fit the texts between title and field, once the change has been laid out."""
        self.call_after_refresh(self._fit)

    def _fit(self) -> None:
        if not self.is_current:
            return
        texts, dialog = self.query_one("#texts"), self.query_one(".dialog")
        others = sum(w.outer_size.height for w in dialog.children if w is not texts and w.display)
        frame = dialog.outer_size.height - dialog.content_size.height
        room = max(1, self.app.size.height - frame - others)
        texts.styles.max_height = room
        length = texts.virtual_size.height
        visible = min(room, texts.size.height) if texts.size.height else room
        self._read_to = max(self._read_to, min(length, round(texts.scroll_y) + visible))
        unread = self.query_one("#unread")
        if unread.display == self._is_read:
            unread.display = not self._is_read
            self.measure()
        self.arm()

    @property
    def _is_read(self) -> bool:
        return self._read_to >= self.query_one("#texts").virtual_size.height

    def action_read(self, pages: int) -> None:
        """Scroll the texts."""
        texts = self.query_one("#texts")
        texts.scroll_relative(y=pages * max(1, texts.size.height - 1), animate=False)

    # ---- the name

    def on_input_changed(self, _event: Input.Changed) -> None:
        self.arm()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if self.armed:
            self.send()
        elif event.value and not self._sent and (words := self.why_not()):
            self.app.notify(words, severity="warning")

    def why_not(self) -> str:
        """Why Enter does nothing; empty where it acts, or where a message says so already."""
        if self.query_one("#name", Input).value != self._cluster_name:
            return "This is not the cluster's name."
        return "" if self._is_read else "Read all of it first: page down."

    @property
    def armed(self) -> bool:
        """Whether the button may act."""
        typed = self.query_one("#name", Input).value
        named = bool(typed) and typed == self._cluster_name
        return named and not self._sent and self._is_read

    def arm(self) -> None:
        """Enable or disable the button."""
        self.query_one("#yes", Button).disabled = not self.armed

    def send(self) -> None:
        """Send the request once; after a refusal it can be sent again."""
        if self.armed and not self.is_covered:
            self._sent = True
            self.arm()
            self._do()

    @work
    async def _do(self) -> None:
        self._sent = await self.attempt(self._act, lambda exc: f"{self._refused}: {exc}.")
        if self.is_current:
            self.arm()
