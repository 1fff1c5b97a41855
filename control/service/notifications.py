"""Notifications: lines of the log as receivers take them, and their delivery.

Log lines are queued without waiting; a thread of its own delivers them, with one queue for each
receiver, so that one that hangs delays no other.
"""

import asyncio
import contextlib
import json
import logging
import os
import re
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import aiohttp

from control.service.notice_ends import ended_by, lasts
from control.settings.notify_table import NotifyLevel, ReceiverKind, ReceiverTable
from model.bounded import read_bytes
from model.closing import Closing
from model.errors import ConfigError
from model.log_events import ATTRIBUTE, LogEvent, event_of, named
from model.printable import printable
from model.private import check_secret

MOST_QUEUED: Final = 100
"""Notifications that wait for a receiver; one more drops the oldest."""
MOST_KEYS: Final = 1000
"""Lines that are remembered, so that equal ones are not sent again."""
MOST_TEXT: Final = 1024
"""Characters of a message: those of PagerDuty's `summary`."""
MOST_SECRET: Final = 4096
"""Bytes of a file with a URL or key."""
TIMEOUT_S: Final = 10.0
"""Seconds of one attempt."""
MOST_TRIES: Final = 6
BACKOFF_S: Final = 1.0
"""Seconds before the second attempt; twice as long before each further one."""
POLL_S: Final = 0.2
"""Seconds between two looks at dropped notifications, and at the end."""
LINGER_S: Final = 3.0
"""Seconds that the end of the service waits for what is queued."""
FIRING_S: Final = 300.0
"""Seconds that Alertmanager takes an alert to be firing, unless it is renewed."""
RENEW_S: Final = 120.0
"""Seconds until an alert whose condition lasts is renewed."""
PAGERDUTY: Final = "https://events.pagerduty.com/v2/enqueue"
_OK: Final = range(200, 300)
_AGAIN: Final = frozenset({408, 425, 429})
logger = logging.getLogger("plimsoll.service")


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One line of the log."""

    at_s: float
    """Seconds since the epoch."""
    level: NotifyLevel
    event: str
    message: str
    plan_hash: str = ""
    cluster: str = ""
    """The cluster's name in the settings, or its bootstrap servers."""

    @property
    def key(self) -> str:
        """The same for equal lines, figures aside."""
        return f"{self.event} {self.plan_hash} {re.sub('[0-9]+', '#', self.message)}"

    @property
    def condition(self) -> tuple[str, str, NotifyLevel]:
        """Identifies the condition that it reports; receivers need it again to end that."""
        return self.event, self.plan_hash, self.level

    @property
    def document(self) -> dict[str, Any]:
        """What webhooks and commands get."""
        return {
            "kind": "plimsoll.notification",
            "schema_version": "1.0",
            "at": _iso(self.at_s),
            "cluster": self.cluster,
            "level": self.level.value,
            "event": self.event,
            "message": self.message,
            "plan_hash": self.plan_hash,
        }


@dataclass(frozen=True, slots=True)
class Message:
    """What a receiver gets: a notice, or that its condition has ended."""

    notice: Notice
    until_s: float
    """Alertmanager takes it to be firing until then; seconds since the epoch."""
    ended: bool = False


def payload(kind: ReceiverKind, message: Message, key: str) -> Any:
    """The JSON of a request; key: PagerDuty's integration key."""
    notice = message.notice
    match kind:
        case ReceiverKind.SLACK:
            text = f"plimsoll {notice.cluster}: {notice.level}: {notice.message}"
            # https://docs.slack.dev/messaging/formatting-message-text#escaping
            for mark, escaped in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
                text = text.replace(mark, escaped)
            return {"text": text}
        case ReceiverKind.PAGERDUTY:
            # https://developer.pagerduty.com/docs/send-alert-event
            incident = {
                "routing_key": key,
                "event_action": "resolve" if message.ended else "trigger",
                "dedup_key": f"plimsoll {notice.cluster} {notice.event} {notice.plan_hash}"[:255],
            }
            if message.ended:
                return incident
            return incident | {
                "client": "plimsoll",
                "payload": {
                    "summary": notice.message,
                    "source": notice.cluster or "plimsoll",
                    "severity": notice.level.value,
                    "timestamp": _iso(notice.at_s),
                    "component": "plimsoll",
                    "class": notice.event,
                    "custom_details": notice.document,
                },
            }
        case ReceiverKind.ALERTMANAGER:
            # https://github.com/prometheus/alertmanager/blob/main/api/v2/openapi.yaml
            labels = {
                "alertname": "Plimsoll",
                "event": notice.event,
                "severity": notice.level.value,
                "cluster": notice.cluster,
                "plan_hash": notice.plan_hash,
            }
            return [
                {
                    # Empty labels are none in Prometheus.
                    "labels": {name: value for name, value in labels.items() if value},
                    "annotations": {"summary": notice.message},
                    "startsAt": _iso(notice.at_s),
                    "endsAt": _iso(max(notice.at_s, message.until_s)),
                }
            ]
        case _:
            return notice.document


class Undelivered(Exception):
    """An attempt failed; `again` says whether another one may succeed."""

    def __init__(self, reason: str, *, again: bool) -> None:
        super().__init__(reason)
        self.again = again


class Receiver:
    """One receiver: what it wants, and how it gets it."""

    def __init__(self, table: ReceiverTable, number: int) -> None:
        """number: of its table, from 1. Raises ConfigError where a file cannot be used."""
        self.table, self.name = table, f"{table.kind} ({number})"
        self._url = table.url or (PAGERDUTY if table.kind is ReceiverKind.PAGERDUTY else "")
        if table.url_file is not None:
            self._url = _secret(table.url_file)
        if table.kind is ReceiverKind.ALERTMANAGER:
            self._url = self._url.rstrip("/") + "/api/v2/alerts"
        self._key = "" if table.key_file is None else _secret(table.key_file)

    def wants(self, notice: Notice) -> bool:
        """Whether a notice is one of its events, and important enough."""
        levels = list(NotifyLevel)
        important = levels.index(notice.level) >= levels.index(self.table.level)
        return important and (not self.table.events or notice.event in self.table.events)

    @property
    def resolves(self) -> bool:
        """Whether it is told when a condition ends."""
        return self.table.kind in (ReceiverKind.PAGERDUTY, ReceiverKind.ALERTMANAGER)

    @property
    def renews(self) -> bool:
        """Whether it forgets a condition that is not reported again."""
        return self.table.kind is ReceiverKind.ALERTMANAGER

    async def send(self, message: Message, timeout_s: float) -> None:
        """Try once. Raises Undelivered."""
        try:
            if self.table.kind is ReceiverKind.COMMAND:
                await self._run(message.notice, timeout_s)
            else:
                await self._post(message, timeout_s)
        except TimeoutError as exc:
            raise Undelivered(f"no answer within {timeout_s:.0f} s", again=True) from exc
        except aiohttp.InvalidURL as exc:
            raise Undelivered("its URL is not valid", again=False) from exc
        except (aiohttp.ClientError, OSError) as exc:
            # The URL, which may be a secret, is not repeated.
            words = getattr(exc, "strerror", None) or type(exc).__name__
            raise Undelivered(words, again=self.table.kind is not ReceiverKind.COMMAND) from exc

    async def _post(self, message: Message, timeout_s: float) -> None:
        bearer = self._key and self.table.kind is not ReceiverKind.PAGERDUTY
        headers = {"Authorization": f"Bearer {self._key}"} if bearer else {}
        limit = aiohttp.ClientTimeout(total=timeout_s)
        body = payload(self.table.kind, message, self._key)
        async with (
            aiohttp.ClientSession(timeout=limit) as session,
            session.post(self._url, json=body, headers=headers, allow_redirects=False) as answer,
        ):
            if answer.status not in _OK:
                again = answer.status in _AGAIN or answer.status >= 500
                raise Undelivered(f"HTTP status {answer.status}", again=again)

    async def _run(self, notice: Notice, timeout_s: float) -> None:
        process = await asyncio.create_subprocess_exec(
            *self.table.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            data = json.dumps(notice.document).encode() + b"\n"
            await asyncio.wait_for(process.communicate(data), timeout_s)
        finally:
            if process.returncode is None:
                # With the processes that it has started, which would live on otherwise.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        if process.returncode:
            raise Undelivered(f"exit code {process.returncode}", again=False)


class Notifications(Closing):
    """Deliver notices until closed; any thread may queue them."""

    def __init__(
        self,
        receivers: Sequence[Receiver],
        *,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
        timeout_s: float = TIMEOUT_S,
        backoff_s: float = BACKOFF_S,
        renew_s: float = RENEW_S,
    ) -> None:
        """clock: seconds since the epoch. steady: seconds of a clock that is never set."""
        self._receivers, self._clock, self._steady = tuple(receivers), clock, steady
        self._timeout_s, self._backoff_s, self._renew_s = timeout_s, backoff_s, renew_s
        self._queues: list[deque[Message]] = [deque(maxlen=MOST_QUEUED) for _ in receivers]
        self._lasting: list[dict[str, Notice]] = [{} for _ in receivers]
        """By receiver and event, the notice of the condition that lasts."""
        self._sent: list[dict[str, float]] = [{} for _ in receivers]
        self._lock = threading.Lock()
        self._dropped = 0
        self._closing = False
        self._loop = asyncio.new_event_loop()
        self._wake = [asyncio.Event() for _ in receivers]
        self._thread = threading.Thread(target=self._main, name="notify", daemon=True)
        if receivers:
            self._thread.start()

    def queue(self, notice: Notice) -> None:
        """Queue a notice for all who want it; never waits for a receiver."""
        with self._lock:
            if self._closing:
                return
            for place, receiver in enumerate(self._receivers):
                if receiver.resolves:
                    self._end(place, notice)
                if receiver.wants(notice) and self._is_new(place, notice):
                    if receiver.resolves and lasts(notice.event, notice.level):
                        self._lasting[place][notice.event] = notice
                    self._put(place, Message(notice, notice.at_s + FIRING_S))

    def _put(self, place: int, message: Message) -> None:
        self._dropped += len(self._queues[place]) == MOST_QUEUED
        self._queues[place].append(message)
        self._loop.call_soon_threadsafe(self._wake[place].set)

    def _end(self, place: int, notice: Notice) -> None:
        """Tell a receiver which conditions end with a line; another one of its kind ends one, too.

        Only one plan waits at a time, and the loop has one phase.
        """
        lasting = self._lasting[place]
        over = ended_by(notice.event, notice.level)
        before = lasting.get(notice.event)
        if before is not None and before.condition != notice.condition:
            over |= {notice.event}
        for event in sorted(over & lasting.keys()):
            self._put(place, Message(lasting.pop(event), notice.at_s, ended=True))
            # Where it begins again, that is news.
            sent = self._sent[place]
            for key in [key for key in sent if key.partition(" ")[0] == event]:
                del sent[key]

    def close(self) -> None:
        """Wait a little for what is queued, and end."""
        with self._lock:
            if self._closing:
                return
            self._closing = True
            if self._receivers:
                for wake in self._wake:
                    self._loop.call_soon_threadsafe(wake.set)
        if self._receivers:
            self._thread.join()
        else:
            self._loop.close()

    def _is_new(self, place: int, notice: Notice) -> bool:
        sent, now_s = self._sent[place], self._steady()
        before_s = sent.get(notice.key)
        if before_s is not None and now_s - before_s < self._receivers[place].table.repeat:
            return False
        sent.pop(notice.key, None)
        sent[notice.key] = now_s
        if len(sent) > MOST_KEYS:
            del sent[next(iter(sent))]
        return True

    def _main(self) -> None:
        try:
            self._loop.run_until_complete(self._deliver_all())
        except Exception:
            logger.exception("notifications have ended", extra=named(LogEvent.NOTIFY_FAILED))
        finally:
            self._loop.close()

    async def _deliver_all(self) -> None:
        tasks = [asyncio.create_task(self._deliver(n)) for n in range(len(self._receivers))]
        waiting = asyncio.gather(*tasks)
        reported = 0
        while not self._closing:
            await asyncio.wait(tasks, timeout=POLL_S)
            if self._dropped > reported:
                words = "%d notifications were dropped, since a receiver is too slow"
                logger.warning(words, self._dropped - reported, extra=named(LogEvent.NOTIFY_FAILED))
                reported = self._dropped
        with contextlib.suppress(TimeoutError, asyncio.CancelledError):
            await asyncio.wait_for(waiting, LINGER_S)

    async def _deliver(self, place: int) -> None:
        receiver, queue, wake = self._receivers[place], self._queues[place], self._wake[place]
        renewed_s = self._loop.time()
        while queue or not self._closing:
            # However many other lines arrive: without renewals, a condition looks resolved.
            left_s = renewed_s + self._renew_s - self._loop.time()
            if left_s <= 0 and not self._closing:
                for message in self._renewals(place):
                    await self._try(place, message)
                renewed_s = self._loop.time()
            elif queue:
                await self._try(place, queue.popleft())
            else:
                wake.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(wake.wait(), left_s if receiver.renews else None)

    def _renewals(self, place: int) -> list[Message]:
        """Reports of the conditions that last, for a receiver that forgets them."""
        if not self._receivers[place].renews:
            return []
        with self._lock:
            until_s = self._clock() + FIRING_S
            return [Message(notice, until_s) for notice in self._lasting[place].values()]

    def _timed(self, place: int, message: Message) -> Message:
        """A message whose alert fires from now on while its condition lasts, however late it is."""
        with self._lock:
            lasting = self._lasting[place].get(message.notice.event)
        same = lasting is not None and lasting.condition == message.notice.condition
        if message.ended or not same:
            return message
        return replace(message, until_s=self._clock() + FIRING_S)

    async def _try(self, place: int, message: Message) -> None:
        receiver = self._receivers[place]
        for number in range(MOST_TRIES):
            try:
                await receiver.send(self._timed(place, message), self._timeout_s)
            except Undelivered as exc:
                if not exc.again or number == MOST_TRIES - 1:
                    logger.warning(
                        "%s was not notified of %s: %s",
                        *(receiver.name, message.notice.event, printable(str(exc))),
                        extra=named(LogEvent.NOTIFY_FAILED),
                    )
                    return
                await asyncio.sleep(self._backoff_s * 2**number)
            else:
                return


class NotifyHandler(logging.Handler):
    """Queue lines of the log; those about notifications themselves are left out."""

    def __init__(self, notifications: Notifications, cluster: str) -> None:
        super().__init__(logging.INFO)
        self._notifications, self._cluster = notifications, cluster

    def createLock(self) -> None:
        """Use no lock: the queue has its own."""
        self.lock = None

    def emit(self, record: logging.LogRecord) -> None:
        """Queue one line."""
        event = event_of(record.name, getattr(record, ATTRIBUTE, None))
        if event == LogEvent.NOTIFY_FAILED.value:
            return
        self._notifications.queue(
            Notice(
                at_s=record.created,
                level=_level(record.levelno),
                event=event,
                message=printable(record.getMessage())[:MOST_TEXT],
                plan_hash=str(getattr(record, "plan_hash", None) or ""),
                cluster=self._cluster,
            )
        )


def receivers_of(tables: Sequence[ReceiverTable]) -> list[Receiver]:
    """The receivers of the settings. Raises ConfigError where a file cannot be used."""
    return [Receiver(table, number) for number, table in enumerate(tables, start=1)]


def tried(receivers: Sequence[Receiver], notice: Notice) -> Mapping[str, str]:
    """Send a notice to all receivers once, at the same time.

    Returns why it was not delivered, by the receiver's name; empty where it was.
    """

    async def one(receiver: Receiver) -> str:
        try:
            await receiver.send(Message(notice, notice.at_s + FIRING_S), TIMEOUT_S)
        except Undelivered as exc:
            return printable(str(exc))
        return ""

    async def every() -> list[str]:
        return await asyncio.gather(*(one(receiver) for receiver in receivers))

    return dict(zip([r.name for r in receivers], asyncio.run(every()), strict=True))


def _level(number: int) -> NotifyLevel:
    if number >= logging.ERROR:
        return NotifyLevel.ERROR
    return NotifyLevel.WARNING if number >= logging.WARNING else NotifyLevel.INFO


def _secret(path: Path) -> str:
    """The first line of a file that others cannot read."""
    check_secret(path, "the secret ")
    data = read_bytes(path, MOST_SECRET, "the secret ")
    text = data.decode("utf-8", "replace").strip()
    if not text or not text.isprintable():
        raise ConfigError(f"{path} holds no line of text")
    return text


def _iso(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds")
