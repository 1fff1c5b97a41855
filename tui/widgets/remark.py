"""Words below a table about the row under its cursor."""

from textual.widgets import Static

from model.printable import printable


class Remark(Static):
    """Plain text; it takes no room where there is nothing to say."""

    _words: str | None = None

    def __init__(self) -> None:
        super().__init__(id="remark", markup=False)

    def say(self, words: str) -> None:
        """Show these words."""
        words = printable(words)
        if words != self._words:
            self._words = words
            self.update(words)
            self.display = bool(words)
