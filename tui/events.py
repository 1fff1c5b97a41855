"""Messages that other threads post to the app."""

from textual.message import Message

from control.loop.view import LoopView


class ViewArrived(Message):
    """The loop has a new view; the latest replaces those still queued."""

    def __init__(self, view: LoopView) -> None:
        super().__init__()
        self.view = view

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, ViewArrived)
