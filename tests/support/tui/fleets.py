"""Fleets as their service describes them, and the app that shows one."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from textual.pilot import Pilot

from control.cli.fleet_source import STEERED, ClusterDetail
from control.cli.output_types import (
    FleetAnswer,
    FleetClusterAnswer,
    FleetRunAnswer,
    WorstBrokerAnswer,
)
from control.loop.policy import Decision
from control.loop.view import Mode, Phase
from control.service.member_state import MemberState
from control.settings.screen_settings import ScreenSettings
from model.errors import PlimsollError
from model.run import RunState
from model.snapshot.snapshot import BrokerState
from tests.support.tui.app_harness import ROUNDS
from tui.fleet_app import FleetApp
from tui.screens.fleet import FleetScreen
from tui.viewmodel.cells import plain
from tui.widgets.keyed_table import KeyedTable
from tui.widgets.text_lines import Lines


def worst(deviation: float, *, outside: bool, broker: int = 3) -> WorstBrokerAnswer:
    """A broker that deviates in bytes in."""
    return WorstBrokerAnswer(
        broker=broker,
        state=BrokerState.ALIVE,
        resource="net_in",
        deviation=deviation,
        outside=outside,
    )


def member(name: str, **others: Any) -> FleetClusterAnswer:
    """A balanced cluster, but for these fields."""
    fields: dict[str, Any] = {
        "name": name,
        "service": MemberState.RUNNING,
        "message": "balanced: nothing to do",
        "cluster_id": name,
        "state_dir": f"/var/lib/plimsoll/{name}",
        "phase": Phase.BALANCED,
        "mode": Mode.AUTO,
        "decision": Decision.REST,
        "rule": "",
        "reason": "balanced",
        "paused": False,
        "worst_broker": worst(0.06, outside=False),
        "run": None,
        "data_age_s": 1.2,
    }
    return FleetClusterAnswer(**(fields | others))


def fleet(*members: FleetClusterAnswer) -> FleetAnswer:
    """A fleet of these clusters."""
    return FleetAnswer(version="1", pid=1, clusters=members)


def balanced() -> FleetAnswer:
    """A fleet in which nothing is to be done."""
    return fleet(member("east"), member("west", worst_broker=worst(-0.08, outside=False)))


def every_kind() -> FleetAnswer:
    """A cluster in each state, in the order of the file."""
    dead = WorstBrokerAnswer(broker=2, state=BrokerState.DEAD, resource=None, deviation=None)
    moving = FleetRunAnswer(run_id="r1", state=RunState.RUNNING, moves=9, done=6, left_s=43.0)
    unknown = {"worst_broker": None, "decision": None, "data_age_s": None, "phase": None}
    return fleet(
        member("balanced-eu-west-1-production"),
        member("starts", service=MemberState.STARTING, message="first observation", **unknown),
        member(
            "moves",
            worst_broker=worst(0.62, outside=True, broker=12),
            run=moving,
            decision=Decision.APPROVE,
            reason="plan 12a9730abc38",
        ),
        member(
            "asks",
            worst_broker=worst(-0.58, outside=True),
            decision=Decision.ASK,
            reason="plan b1c2d3e4f5a6 needs approval: 38 moves, limit 20; the trigger uneven_load "
            "is set to ask, and its window opens on Saturday at 02:00 Europe/Berlin",
            paused=True,
        ),
        member("dies", worst_broker=dead, decision=Decision.SETTLE, reason="broker 2 is dead"),
        member(
            "lost",
            service=MemberState.NOT_READY,
            phase=Phase.UNREACHABLE,
            message="cannot connect: No Kafka broker answers at lost:9092; retrying in 4 s",
            data_age_s=312.0,
        ),
        member("pauses", paused=True),
        member("backup", phase=Phase.STANDBY, decision=None, message="standing by: host-a leads"),
        member("hangs", service=MemberState.HANGING, message="the loop has not turned for 72 s"),
        member(
            "fails",
            service=MemberState.FAILED,
            message="fails.toml is not valid TOML: line 3",
            **unknown,
        ),
    )


DETAIL = ClusterDetail(
    status="asks, auto; plimsoll 0.2.0, process 4711\n"
    "plan ready: 38 moves\n"
    "plan b1c2d3e4f5a6 waits for approval: 38 moves, 9.1 GB to copy\n"
    "  plimsoll ctl approve b1c2d3e4f5a6 --fleet fleet.toml --cluster asks, or "
    "plimsoll ctl reject b1c2d3e4f5a6 --fleet fleet.toml --cluster asks\n"
    + STEERED.format(" --fleet fleet.toml --cluster asks"),
    brokers="broker  rack  state  net_in               net_out\n"
    "     1  az-a  alive  50.2 MB/s (+34 %)    69.6 MB/s (+62 %)\n"
    "     2  az-b  alive  33.1 MB/s (-12 %)    17.9 MB/s (-58 %)\n",
    decisions="2026-11-28T10:00:00Z  ask (uneven_load): plan b1c2d3e4f5a6 needs approval\n"
    "                      reconsidered when a person answers\n",
)


@dataclass
class FakeFleet:
    """Answers what a test sets."""

    answer: FleetAnswer
    detailed: ClusterDetail = DETAIL
    fault: PlimsollError | None = None
    """Raised in place of answers."""
    opened: list[str] = field(default_factory=list)
    """Clusters whose detail was asked for."""
    screen: ScreenSettings = field(default_factory=ScreenSettings)
    keys: dict[str, str] = field(default_factory=dict)

    def table(self) -> FleetAnswer:
        if self.fault is not None:
            raise self.fault
        return self.answer

    def detail(self, row: FleetClusterAnswer) -> ClusterDetail:
        self.opened.append(row.name)
        if self.fault is not None:
            raise self.fault
        return self.detailed


@dataclass
class FleetStage:
    """The objects that a test acts on and inspects."""

    fleet: FakeFleet
    app: FleetApp
    pilot: Pilot[None]
    clock_s: float = 0.0
    terminal_gone: bool = False

    async def settle(self) -> None:
        """Wait until messages, threads and repaints are done."""
        for _ in range(2):
            await self.app.workers.wait_for_complete()
            for _ in range(ROUNDS):
                await self.pilot.pause(0)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.settle()

    async def later(self, seconds: float) -> None:
        """Let time pass, and the app ask what is due."""
        self.clock_s += seconds
        self.app.tick()
        await self.settle()

    @property
    def screen(self) -> FleetScreen:
        found = self.app.screen_stack[0]
        assert isinstance(found, FleetScreen)
        return found

    def words(self, selector: str) -> str:
        """The lines of a widget."""
        shown = self.screen.query_one(selector, Lines).shown or ()
        return "\n".join(map(plain, shown))

    @property
    def table(self) -> list[list[str]]:
        """Cells of the table as text."""
        rows = self.screen.query_one(KeyedTable).rows_shown
        return [[plain(cell).strip() for cell in row.cells] for row in rows]


@contextlib.asynccontextmanager
async def fleet_stage(
    answer: FleetAnswer,
    *,
    size: tuple[int, int] = (80, 24),
    theme: str = "textual-dark",
    keys: dict[str, str] | None = None,
) -> AsyncIterator[FleetStage]:
    """The screen of a fleet; its clock stands still, so that only `later` asks again."""
    fake = FakeFleet(answer, screen=ScreenSettings(theme=theme), keys=keys or {})
    stages: list[FleetStage] = []
    app = FleetApp(
        fake,
        fake,
        answer,
        name="fleet.toml",
        clock=lambda: stages[0].clock_s if stages else 0.0,
        terminal_gone=lambda: bool(stages) and stages[0].terminal_gone,
    )
    async with app.run_test(size=size) as pilot:
        stages.append(FleetStage(fake, app, pilot))
        await stages[0].settle()
        yield stages[0]
