"""What may be typed after `:`, and where each name leads."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from control.loop.view import LoopView
from model.exchange.text_files import nearest
from model.ids import TopicName

NAMES: Final = {
    "overview": "show_mode('overview')",
    "brokers": "show_mode('overview')",
    "plan": "show_mode('plan')",
    "moves": "show_mode('plan')",
    "run": "show_mode('run')",
    "topics": "show_mode('topics')",
    "history": "show_mode('history')",
    "runs": "show_mode('history')",
    "log": "show_mode('log')",
    "tasks": "show_mode('tasks')",
    "problems": "problems",
    "help": "help",
    "quit": "quit",
}
"""The action of each name."""
WITH_BROKER: Final = "broker"
WITH_TOPIC: Final = "topic"
OFFERED: Final = 6
"""Completions listed at once."""


@dataclass(frozen=True, slots=True)
class NamedPlace:
    """What was typed: an action, or a message on why there is none."""

    action: str = ""
    """An action of the app."""
    fault: str = ""


def completions(typed: str, view: LoopView) -> tuple[str, ...]:
    """What begins with the text, names first; all names for an empty text."""
    word = typed.lstrip().lower()
    found = [name for name in _known(view) if name.lower().startswith(word)]
    return tuple(found if word.strip() else NAMES)


def command_of(typed: str, view: LoopView) -> NamedPlace:
    """What to do; a beginning is enough where it fits one screen only, as in `:his`.

    Case does not count, as in completions.
    """
    text = typed.strip().removeprefix(":")
    name, _, argument = text.partition(" ")
    argument = argument.strip()
    if name.lower() == WITH_BROKER:
        return _broker(argument, view)
    if name.lower() == WITH_TOPIC:
        return _topic(argument, view)
    word = text.lower()
    if word in NAMES:
        return NamedPlace(NAMES[word])
    fitting = [name for name in NAMES if word and name.startswith(word)]
    if len({NAMES[name] for name in fitting}) == 1:
        return NamedPlace(NAMES[fitting[0]])
    if fitting:
        return NamedPlace(fault=f"{text} fits {', '.join(fitting)}")
    known = (*NAMES, f"{WITH_BROKER} ID", f"{WITH_TOPIC} NAME")
    if found := difflib.get_close_matches(word, known, 1):
        return NamedPlace(fault=f"there is no {text!r}; did you mean {found[0]!r}?")
    return NamedPlace(fault=f"there is no {text!r}; known: {', '.join(known)}")


def _broker(argument: str, view: LoopView) -> NamedPlace:
    if argument in map(str, _brokers(view)):
        return NamedPlace(f"open_broker({argument})")
    return NamedPlace(fault=f"there is no broker {argument!r}")


def _topic(argument: str, view: LoopView) -> NamedPlace:
    topics = _topics(view)
    # Names of topics differ by case.
    like = [topic for topic in topics if topic.lower() == argument.lower()]
    if argument in topics or len(like) == 1:
        return NamedPlace(f"open_topic({argument if argument in topics else str(like[0])!r})")
    return NamedPlace(fault=f"there is no topic {argument!r}{nearest(argument, topics)}")


def _known(view: LoopView) -> Iterator[str]:
    yield from NAMES
    yield from (f"{WITH_BROKER} {broker}" for broker in _brokers(view))
    yield from (f"{WITH_TOPIC} {topic}" for topic in _topics(view))


def _brokers(view: LoopView) -> Sequence[int]:
    return [b.id for b in view.snapshot.header.brokers] if view.snapshot else []


def _topics(view: LoopView) -> Sequence[TopicName]:
    return [t.name for t in view.snapshot.header.topics] if view.snapshot else []
