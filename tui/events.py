"""What other threads tell the screen."""

from textual.message import Message

from control.loop.view import LoopView


class ViewArrived(Message):
    """The loop has a new view; of several that wait, the newest counts."""

    def __init__(self, view: LoopView) -> None:
        super().__init__()
        self.view = view

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, ViewArrived)
