"""A yes-or-no dialog; the default is no."""

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Button, Label, Static

from tui.screens.dialog import title_classes
from tui.screens.too_small import Covered


class Question(Covered[bool]):
    """Answer True only if the yes button is pressed."""

    BINDINGS = [Binding("escape", "no", "No", id="question.no")]
    AUTO_FOCUS = "#no"

    def __init__(self, title: str, text: str, *, yes: str, no: str) -> None:
        super().__init__()
        self._title, self._text, self._yes, self._no = title, text, yes, no

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog", can_focus=False):
            yield Label(self._title, classes=title_classes(self._title), markup=False)
            yield Static(self._text, markup=False)
            with Horizontal(classes="buttons"):
                yield Button(self._no, id="no", variant="primary")
                yield Button(self._yes, id="yes", variant="warning")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "no" or not self.is_covered:
            self.dismiss(event.button.id == "yes")

    def action_no(self) -> None:
        self.dismiss(False)
