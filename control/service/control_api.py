"""What the control socket serves beyond the read-only API: the service's state, and actions.

Operators who have logged in over HTTP may request the same actions. Actions run in threads beside
the server, so that none of them delays a probe.
"""

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final

from aiohttp import web
from pydantic import ValidationError

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
    UNKNOWN,
    Action,
    ActionParameters,
    ActionRequest,
    OperatorActions,
)
from control.service.service_state import ServiceState
from model import __version__
from model.errors import PlimsollError
from model.printable import printable
from model.run import MoveState, RunProgress

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
_THREADS: Final = 4


class ControlApi:
    """Handlers of the control socket; called by the server's thread."""

    def __init__(self, state: ServiceState, actions: OperatorActions) -> None:
        self._state, self._actions = state, actions
        self._workers = ThreadPoolExecutor(_THREADS, thread_name_prefix="control")
        self._pending = 0

    def close(self) -> None:
        """End the threads after the actions in progress."""
        self._workers.shutdown(wait=False, cancel_futures=True)

    def add_to(self, app: web.Application) -> None:
        """Add the routes."""
        app.router.add_get(f"{PREFIX}/status", self.status)
        app.router.add_post(f"{PREFIX}/actions/{{action}}", self._act_for_peer)

    def add_actions_to(self, app: web.Application, prefix: str) -> None:
        """Add the routes of clients that have logged in."""
        app.router.add_get(f"{prefix}/service", self.status)
        app.router.add_get(f"{prefix}/{AUDIT}", self.audit)
        app.router.add_post(f"{prefix}/actions/{{action}}", self.act_for_client)

    async def status(self, _request: web.Request) -> web.Response:
        """What the service does now."""
        loop = asyncio.get_running_loop()
        return _document(await loop.run_in_executor(self._workers, self._status_text))

    def _status_text(self) -> str:
        return json_text(ctl_status(self._state, self._actions))

    async def audit(self, _request: web.Request) -> web.Response:
        """Who did what."""
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
        return await self._act(request, asked, peer_in(request))

    async def act_for_client(self, request: web.Request) -> web.Response:
        """Do what a client requests that has logged in."""
        client = request[CLIENT]
        if request.content_type != "application/json":
            # A web page can make a browser that has logged in send forms, but no JSON.
            return refusal(415, "send JSON, with Content-Type: application/json")
        data = await request.read()
        try:
            asked = ActionParameters.model_validate_json(data)
        except ValidationError as exc:
            return _invalid(exc)
        named = ActionRequest(by=client.name, plan_hash=asked.plan_hash, rate=asked.rate)
        return await self._act(request, named, UNKNOWN, client.address or "unknown")

    async def _act(
        self, request: web.Request, asked: ActionRequest, peer: Peer, client: str = ""
    ) -> web.Response:
        name = request.match_info["action"]
        if name not in list(Action):
            return refusal(404, f"there is no such action; there are {', '.join(Action)}")
        if self._pending >= MOST_PENDING:
            return refusal(503, f"{MOST_PENDING} actions are in progress; try again")
        via = AuditVia.HTTP if client else AuditVia.SOCKET
        work = partial(self._actions.perform, Action(name), asked, peer, via, client)
        loop = asyncio.get_running_loop()
        self._pending += 1
        try:
            # Once begun, an action is not abandoned with its client.
            result = await asyncio.shield(loop.run_in_executor(self._workers, work))
        except PlimsollError as exc:
            return refusal(409, printable(str(exc)), type(exc).__name__)
        finally:
            self._pending -= 1
        return _document(json_text(ActionAnswer.of(result, action=name)))


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


def _document(text: str) -> web.Response:
    return web.Response(
        text=text, content_type="application/json", headers={"Cache-Control": "no-store"}
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
