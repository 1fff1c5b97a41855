"""Dialogs whose request can be refused: they stay open and show the reason."""

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Sequence

from textual import work
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Button, Input, Label, Static

from model.errors import PlimsollError
from tui.screens.too_small import Covered


class Dialog(Covered[None]):
    """A dialog with the buttons `yes` and `no` and the message line `refused`."""

    def on_mount(self) -> None:
        # Otherwise each step of its layout would be painted, with the screen below.
        self.app.delay_update()

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
    """A dialog that acts only once the cluster's name is typed."""

    AUTO_FOCUS = "#name"

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

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog", can_focus=False):
            yield Label(self._title, classes="title", markup=False)
            for text in self._texts:
                yield Static(text, markup=False)
            yield from self.details()
            yield Static(id="refused", markup=False)
            yield Label(
                f"Type the cluster's name to {self._aim}, then Enter: {self._cluster_name}",
                markup=False,
            )
            yield Input(id="name", placeholder="the cluster's name")
            with Horizontal(classes="buttons"):
                yield Button("Cancel", id="no", variant="primary")
                yield Button(self._yes, id="yes", variant="warning", disabled=True)

    def details(self) -> ComposeResult:
        """Further widgets below the texts."""
        yield from ()

    def on_input_changed(self, _event: Input.Changed) -> None:
        self.arm()
        self.show_focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if self.armed:
            self.send()
        elif event.value and event.value != self._cluster_name:
            self.app.notify("This is not the cluster's name.", severity="warning")

    @property
    def armed(self) -> bool:
        """Whether the button may act."""
        typed = self.query_one("#name", Input).value
        return bool(typed) and typed == self._cluster_name and not self._sent

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
