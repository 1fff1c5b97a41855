"""What the control socket serves beyond the read-only API: the service's state, and actions.

Operators who have logged in over HTTP may request the same actions. Actions run in threads beside
the server, so that none of them delays a probe.
"""

import asyncio
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from aiohttp import web
from pydantic import BaseModel, ValidationError

from control.cli.output_types import (
    ActionAnswer,
    CtlRunAnswer,
    CtlStatusAnswer,
    InterruptedAnswer,
    PauseAnswer,
    StandbyAnswer,
)
from control.loop import questions
from control.loop.view import LoopView
from control.render.audit_text import audit_answer
from control.render.decision_answers import waiting_answer
from control.render.text import json_text, time_text
from control.service.audit_log import AuditVia, read_audit
from control.service.control_socket import Peer, peer_of
from control.service.http_access import CLIENT
from control.service.operator_actions import (
    RELOAD,
    UNKNOWN,
    Action,
    ActionParameters,
    ActionRequest,
    BadRequest,
    OperatorActions,
)
from control.service.service_state import ServiceState
from control.service.simulations import SimulateParameters, Simulations, simulate_for
from control.service.task_requests import (
    CancelParameters,
    TaskParameters,
    cancel_task,
    request_task,
    task_text,
    tasks_text,
)
from control.tasks.task_files import UnknownTask
from model import __version__
from model.errors import ConfigError, PlimsollError
from model.printable import printable
from model.run import MoveState, RunProgress
from model.units import count_text

if TYPE_CHECKING:
    from control.loop.loop import Loop

PREFIX: Final = "/control/v1"
ERROR: Final = "Plimsoll-Error"
"""The header that names the class of an error."""
MOST_BODY: Final = 16_384
"""Bytes of a request's body."""
MOST_PENDING: Final = 16
"""Actions in progress; further ones are refused."""
AUDIT: Final = "audit"
"""Path of the audit log under the prefix of the API, for admins."""
MOST_ACTIONS: Final = 1000
"""Actions of the audit log that are returned, the newest."""
WARNING: Final = "Plimsoll-Warning"
"""The header that says what a document lacks."""
_THREADS: Final = 4
_READERS: Final = 2
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


class ControlApi:
    """Handlers of the control socket; called by the server's thread."""

    def __init__(
        self, state: ServiceState, actions: OperatorActions, simulations: Simulations | None = None
    ) -> None:
        """simulations: None where none may be requested."""
        self._state, self._actions, self._simulations = state, actions, simulations
        self._workers = ThreadPoolExecutor(_THREADS, thread_name_prefix="control")
        # An archive that does not answer must not keep actions waiting.
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="tasks")
        self._pending = 0

    def close(self) -> None:
        """End the threads after the actions in progress."""
        for pool in (self._workers, self._readers):
            pool.shutdown(wait=False, cancel_futures=True)

    def add_to(self, app: web.Application) -> None:
        """Add the routes."""
        app.router.add_get(f"{PREFIX}/status", self.status)
        app.router.add_get(f"{PREFIX}/tasks", self.tasks)
        app.router.add_post(f"{PREFIX}/actions/{{action}}", self._act_for_peer)

    def add_reads_to(self, app: web.Application, prefix: str) -> None:
        """Add the routes of everyone who may read the API."""
        for path, handler in READS.items():
            app.router.add_get(f"{prefix}/{path}", partial(handler, self))

    def add_actions_to(self, app: web.Application, prefix: str) -> None:
        """Add the routes of clients that have logged in."""
        app.router.add_get(f"{prefix}/service", self.status)
        app.router.add_get(f"{prefix}/{AUDIT}", self.audit)
        for path, handler in POSTS.items():
            app.router.add_post(f"{prefix}/{path}", partial(handler, self))

    async def status(self, request: web.Request) -> web.Response:
        """What the service does now."""
        if request.query:
            return _unknown_in(request.query)
        loop = asyncio.get_running_loop()
        return _document(await loop.run_in_executor(self._workers, self._status_text))

    def _status_text(self) -> str:
        return json_text(ctl_status(self._state, self._actions))

    async def audit(self, request: web.Request) -> web.Response:
        """Who did what."""
        if request.query:
            return _unknown_in(request.query)
        loop = asyncio.get_running_loop()
        return _document(await loop.run_in_executor(self._workers, self._audit_text))

    def _audit_text(self) -> str:
        return json_text(audit_answer(read_audit(self._actions.state_dir), MOST_ACTIONS))

    async def _act_for_peer(self, request: web.Request) -> web.Response:
        data = await request.read()
        try:
            asked = ActionRequest.model_validate_json(data)
        except ValidationError as exc:
            return _invalid(exc)
        peer = peer_in(request)
        if request.match_info["action"] != RELOAD:
            return await self._act(request, asked, peer)

        def work() -> str:
            return json_text(ActionAnswer.of(self._actions.reload(asked, peer), action=RELOAD))

        return await self._done(work, local=True)

    # ---- tasks on brokers

    async def tasks(self, request: web.Request) -> web.Response:
        """Those that are open, or all of them."""
        query = dict(request.query)
        every = query.pop("all", "false").lower()
        if query:
            return _unknown_in(query)
        if every not in ("true", "false"):
            return refusal(400, "all is true or false")
        work = partial(tasks_text, self._actions, every=every == "true")
        try:
            text, unreadable = await self._in_thread(work)
        except PlimsollError as exc:
            return self._refused(exc, 503)
        found = _document(text)
        if unreadable:
            found.headers[WARNING] = (
                f"{count_text(unreadable, 'task')} cannot be read; see plimsoll task list"
            )
        return found

    async def task(self, request: web.Request) -> web.Response:
        """One of them."""
        if request.query:
            return _unknown_in(request.query)
        work = partial(task_text, self._actions, request.match_info["task"])
        try:
            return _document(await self._in_thread(work))
        except PlimsollError as exc:
            return self._refused(exc, 503)

    async def request_task(self, request: web.Request) -> web.Response:
        """Request one."""
        asked = await _parameters(request, TaskParameters)
        if isinstance(asked, web.Response):
            return asked
        return await self._done(partial(request_task, self._actions, asked, request[CLIENT]))

    async def cancel_task(self, request: web.Request) -> web.Response:
        """Cancel one."""
        asked = await _parameters(request, CancelParameters)
        if isinstance(asked, web.Response):
            return asked
        prefix = request.match_info["task"]
        return await self._done(partial(cancel_task, self._actions, prefix, asked, request[CLIENT]))

    # ---- simulations

    async def simulation(self, request: web.Request) -> web.Response:
        """The result of the newest simulation."""
        if request.query:
            return _unknown_in(request.query)
        found = None if self._simulations is None else self._simulations.newest
        if found is None:
            return refusal(404, "no simulation has been requested since the start of the service")
        if found.text:
            return _document(found.text)
        if found.why:
            return self._refused(ConfigError(found.why), 409)
        running = refusal(202, f"the simulation that {found.by} requested is running", "")
        running.headers["Retry-After"] = "5"
        return running

    async def simulate(self, request: web.Request) -> web.Response:
        """Begin a simulation."""
        asked = await _parameters(request, SimulateParameters)
        if isinstance(asked, web.Response):
            return asked
        simulations = self._simulations
        if simulations is None:
            return refusal(404, "this service does not simulate")
        view = self._state.view
        snapshot = None if view is None else view.snapshot
        work = partial(simulate_for, simulations, self._actions, asked, snapshot, request[CLIENT])
        return await self._done(work, status=202)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, work)

    async def _done(
        self, work: Callable[[], str], status: int = 200, *, local: bool = False
    ) -> web.Response:
        """Do what a client requests; respond with the document that it returns.

        local: whether the client sees the service's files.
        """
        if self._pending >= MOST_PENDING:
            return refusal(503, f"{MOST_PENDING} actions are in progress; try again")
        self._pending += 1
        try:
            # Once begun, an action is not abandoned with its client.
            running = asyncio.get_running_loop().run_in_executor(self._workers, work)
            return _document(await asyncio.shield(running), status)
        except PlimsollError as exc:
            return self._refused(exc, 409, local=local)
        finally:
            self._pending -= 1

    def _refused(self, exc: PlimsollError, status: int, *, local: bool = False) -> web.Response:
        """Why a request is refused; status: but of what the client has to correct."""
        if isinstance(exc, UnknownTask):
            status = 404
        elif isinstance(exc, BadRequest):
            status = 400
        text = str(exc)
        if not local:
            # Clients over the network do not see the folder, and need not know where it is.
            text = text.replace(f"{self._actions.state_dir}/", "")
        name = "ConfigError" if isinstance(exc, UnknownTask | BadRequest) else type(exc).__name__
        return refusal(status, printable(text), name)

    async def act_for_client(self, request: web.Request) -> web.Response:
        """Do what a client requests that has logged in."""
        client = request[CLIENT]
        asked = await _parameters(request, ActionParameters)
        if isinstance(asked, web.Response):
            return asked
        named = ActionRequest(by=client.name, plan_hash=asked.plan_hash, rate=asked.rate)
        return await self._act(request, named, UNKNOWN, client.address or "unknown")

    async def _act(
        self, request: web.Request, asked: ActionRequest, peer: Peer, client: str = ""
    ) -> web.Response:
        name = request.match_info["action"]
        if name not in list(Action):
            return refusal(404, f"there is no such action; there are {', '.join(Action)}")
        via = AuditVia.HTTP if client else AuditVia.SOCKET

        def work() -> str:
            result = self._actions.perform(Action(name), asked, peer, via, client)
            return json_text(ActionAnswer.of(result, action=name))

        return await self._done(work, local=not client)


READS: Final = {
    "tasks": ControlApi.tasks,
    "tasks/{task}": ControlApi.task,
    "simulate": ControlApi.simulation,
}
"""Handlers of everyone who may read the API, by their paths under its prefix."""
POSTS: Final = {
    "actions/{action}": ControlApi.act_for_client,
    "tasks": ControlApi.request_task,
    "tasks/{task}/cancel": ControlApi.cancel_task,
    "simulate": ControlApi.simulate,
}
"""Handlers of operators who have logged in."""


async def _parameters(request: web.Request, form: type[M]) -> "M | web.Response":
    """The body as parameters; a response where it is not valid."""
    if request.query:
        return _unknown_in(request.query)
    if request.content_type != "application/json":
        # A web page can make a browser that has logged in send forms, but no JSON.
        return refusal(415, "send JSON, with Content-Type: application/json")
    try:
        return form.model_validate_json(await request.read())
    except ValidationError as exc:
        return _invalid(exc)


def _unknown_in(query: Mapping[str, str]) -> web.Response:
    return refusal(400, f"unknown parameter {printable(next(iter(query)))!r}")


def _invalid(exc: ValidationError) -> web.Response:
    found = exc.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, found["loc"])) or "the body"
    return refusal(400, printable(f"{place}: {found['msg']}"))


def peer_in(request: web.Request) -> Peer:
    """The process that sent a request. Raises OSError where its connection is closed."""
    transport = request.transport
    connection = None if transport is None else transport.get_extra_info("socket")
    if connection is None:
        raise ConnectionResetError
    return peer_of(connection)


def refusal(status: int, text: str, error: str = "ConfigError") -> web.Response:
    """One sentence on why a request is refused, and the class of its error."""
    headers = {"Cache-Control": "no-store", ERROR: error}
    return web.Response(status=status, text=text + "\n", headers=headers)


def _document(text: str, status: int = 200) -> web.Response:
    return web.Response(
        status=status,
        text=text,
        content_type="application/json",
        headers={"Cache-Control": "no-store"},
    )


def ctl_status(state: ServiceState, actions: OperatorActions) -> CtlStatusAnswer:
    """What the service does now, without waiting for the loop or the cluster."""
    view, loop, pause = state.view, actions.loop, actions.pause
    run = None if loop is None else actions.run_in_progress(loop)
    now_ms = state.now_ms()
    return CtlStatusAnswer.of(
        version=__version__,
        pid=os.getpid(),
        settings_read_at=time_text(int(1000 * state.read_at_s)),
        cluster_id=_cluster_id(view),
        name="" if view is None else view.cluster_name,
        mode=None if loop is None else loop.settings.mode,
        phase=None if view is None else view.phase,
        message="" if view is None else view.sentence(now_ms),
        not_ready=state.not_ready(),
        paused=None if pause is None else PauseAnswer.of(pause, at=time_text(pause.at_ms)),
        waiting=[
            waiting_answer(actions.state_dir, question, now_ms)
            for question in questions.questions(actions.state_dir)
            if question.is_due(now_ms)
        ],
        run=None if run is None else _run_answer(run, loop),
        interrupted=_interrupted(loop),
        standby=_standby(state),
    )


def _standby(state: ServiceState) -> StandbyAnswer | None:
    found = state.standing
    if found is None:
        return None
    return StandbyAnswer(
        leads=found.leads,
        leader=found.leader,
        message=found.message,
        other_policy=found.other_policy,
    )


def _cluster_id(view: LoopView | None) -> str:
    snapshot = None if view is None else view.snapshot
    return "" if snapshot is None else snapshot.header.cluster_id


def _run_answer(run: RunProgress, loop: "Loop | None") -> CtlRunAnswer:
    return CtlRunAnswer.of(
        run,
        started_at=time_text(run.started_at_ms),
        moves=len(run.moves),
        done=run.count(MoveState.DONE),
        in_flight=run.count(MoveState.ISSUED),
        paused=loop is not None and loop.steering.paused,
    )


def _interrupted(loop: "Loop | None") -> InterruptedAnswer | None:
    found = None if loop is None else loop.previous_runs.interrupted
    if found is None:
        return None
    return InterruptedAnswer.of(
        found,
        plan_hash=found.plan.hash,
        started_at=time_text(found.started_at_ms),
        moves=len(found.moves),
        done=found.progress.count(MoveState.DONE),
    )
