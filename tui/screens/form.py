"""A form in a dialog: inputs, and a message on what is wrong with them."""

from collections.abc import Callable, Sequence
from typing import Final

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Button, Input, Label, Static

from model.errors import PlimsollError
from tui.screens.dialog import Dialog
from tui.viewmodel.plan.forms import FormLine, Typed
from tui.widgets.compact import compact

MORE: Final = "▼ more below"


class FormScreen(Dialog):
    """Pass the inputs to `submit`; stay open and show the reason if it refuses."""

    BINDINGS = [Binding("escape", "no", "Cancel", id="form.cancel")]
    AUTO_FOCUS = "Input"

    def __init__(
        self,
        title: str,
        lines: Sequence[FormLine],
        *,
        check: Callable[[Typed], object],
        submit: Callable[[Typed], None],
        done: str,
    ) -> None:
        """Call `check` at each keystroke, and `submit` at the end in another thread.

        Both raise PlimsollError if they refuse. done: the button's label.
        """
        super().__init__()
        self._title, self._lines, self._done = title, lines, done
        self._check, self._submit = check, submit
        self._sent = False
        self._fields: list[Input] = []
        self._checked: Typed = {}

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog form", can_focus=False):
            yield Label(self._title, classes="title -long", markup=False)
            # One widget for all labels: laying out each takes milliseconds.
            labels = "\n".join(line.label for line in self._lines)
            with Horizontal(classes="lines"):
                yield Static(labels, classes="labels", markup=False)
                with Vertical():
                    self._fields = [_field(line) for line in self._lines]
                    yield from self._fields
            yield Static(id="refused", markup=False)
            with Horizontal(classes="buttons"):
                yield Button("Cancel", id="no")
                yield Button(self._done, id="yes", variant="primary")

    def on_mount(self) -> None:
        for moved in ("scroll_y", "virtual_size"):
            self.watch(self.query_one(".form"), moved, self._measure)

    def on_resize(self) -> None:
        self._measure()

    def _measure(self) -> None:
        # Its size is not yet that of the fields while it is laid out.
        self.call_after_refresh(self._mark_more)

    def _mark_more(self) -> None:
        """Say where fields are out of sight; the dialog scrolls to the one that has the focus."""
        form = self.query_one(".form")
        form.border_subtitle = MORE if form.scroll_y < form.max_scroll_y else ""

    @property
    def typed(self) -> Typed:
        """The text of each input."""
        return {str(field.name): field.value for field in self._fields}

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        # Each field reports its text once more when the form opens.
        if (typed := self.typed) == self._checked:
            return
        self._checked = typed
        try:
            self._check(typed)
        except PlimsollError as exc:
            self.say(str(exc))
        else:
            self.say("")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.send()

    def send(self) -> None:
        """Submit the inputs, and close if they are accepted."""
        if not self._sent:
            self._sent = True
            self._send(self.typed)

    @work
    async def _send(self, typed: Typed) -> None:
        self._sent = await self.attempt(lambda: self._submit(typed))
        if not self._sent and self.is_current:
            self.call_after_refresh(self._repeat_why_not)

    def _repeat_why_not(self) -> None:
        """Repeat the reason as a notification if the form has no room to show it."""
        line, dialog = self.query_one("#refused", Static), self.query_one(".dialog")
        if not dialog.region.contains_region(line.region):
            self.app.notify(str(line.content), severity="error", markup=False)


def _field(line: FormLine) -> Input:
    return compact(Input(line.text, line.hint, name=line.key, select_on_focus=False))
