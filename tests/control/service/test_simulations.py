"""Simulations that clients request: one at a time, bounded, and ended with their service."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from control.cli import simulation_process
from control.cli.simulation_process import result
from control.service.simulations import (
    MOST_BYTES,
    SimulateParameters,
    Simulation,
    SimulationJob,
    Simulations,
    SimulationTurn,
)
from control.settings.settings import Settings
from model.errors import ConfigError, GuardrailRefused
from tests.support.control.loop_parts import MB, cluster
from tests.support.tui.terminals import LONG_S

UNEVEN = cluster([2] * 4, [MB] * 4)
ASKED = SimulateParameters(policies=("eager",), days=1, steady=True, search_budget=0.01)
WAITS = "import os, sys, time; print(os.getpid(), flush=True); sys.stdin.buffer.read()"


def program(text: str) -> tuple[str, ...]:
    return (sys.executable, "-P", "-c", text)


def until(accepts: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONG_S
    while not accepts():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def ended(simulations: Simulations) -> Simulation:
    until(lambda: simulations.newest is not None and not simulations.newest.is_running)
    assert simulations.newest is not None
    return simulations.newest


def started(command: tuple[str, ...], most_s: float = LONG_S) -> Simulations:
    found = Simulations(command, most_s)
    found.settings = Settings()
    found.start(ASKED, UNEVEN, "eve")
    return found


def test_the_process_gives_the_result_of_the_function() -> None:
    with Simulations() as simulations:
        simulations.settings = Settings()
        simulations.start(ASKED, UNEVEN, "eve")
        with pytest.raises(GuardrailRefused, match="the simulation that eve requested is running"):
            simulations.start(ASKED, UNEVEN, "bob")
        found = ended(simulations)
    job = SimulationJob(settings=Settings(), snapshot=UNEVEN, asked=ASKED)
    assert (found.text, found.why) == (result(job), "")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import sys; sys.stderr.write('plimsoll: no loads\\n'); sys.exit(2)", "no loads"),
        ("import sys; sys.exit(3)", "it ended with code 3"),
        (f"print('x' * {MOST_BYTES})", "the result has more than 67,108,864 bytes"),
        ("pass", "the simulation ended without a result"),
        ("import os; os.abort()", "ended by SIGABRT, perhaps for lack of memory"),
    ],
)
def test_a_process_that_fails_is_reported(text: str, why: str) -> None:
    with started(program(text)) as simulations:
        assert why in ended(simulations).why
        # Another one may follow.
        simulations.start(ASKED, UNEVEN, "bob")


def test_a_process_that_takes_too_long_is_ended() -> None:
    with started(program(WAITS), 0.1) as simulations:
        assert "took more than 0 s" in ended(simulations).why


def test_a_process_has_a_bound_on_its_memory_and_ends_before_its_service() -> None:
    text = """
import sys
from pathlib import Path
from control.cli import simulation_process
simulation_process.most_bytes = lambda: 512 * 1024**2
simulation_process.result = lambda _job: str(len(bytearray(2 * 1024**3)))
code = simulation_process.main()
if Path("/proc/self/oom_score_adj").read_text() != "1000\\n":
    sys.stderr.write("it would not be ended first")
sys.exit(code)
"""
    with started(program(text)) as simulations:
        assert ended(simulations).why == (
            "the simulation needs more than 537 MB of memory; simulate fewer days or policies"
        )


def test_the_bound_is_that_of_the_machine_or_the_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(simulation_process, "CGROUP_LIMIT", limit)
    whole = simulation_process.most_bytes()
    for text, most in (
        ("max\n", whole),
        (f"{6 * 1024**3}\n", min(whole, 3 * 1024**3)),
        ("1048576\n", simulation_process.LEAST_BYTES),
    ):
        limit.write_text(text)
        assert simulation_process.most_bytes() == most


def test_clusters_of_a_process_simulate_one_at_a_time() -> None:
    turn = SimulationTurn()
    with Simulations(program(WAITS), turn=turn) as one, Simulations(turn=turn) as two:
        one.settings = two.settings = Settings()
        one.start(ASKED, UNEVEN, "eve")
        with pytest.raises(GuardrailRefused, match="the simulation that eve requested is running"):
            two.start(ASKED, UNEVEN, "bob")
        assert two.newest is None
        one.close()
        two.start(ASKED, UNEVEN, "bob")
        assert ended(two).text


def test_a_program_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    with started((str(tmp_path / "none"),)) as simulations:
        assert "cannot be started: No such file" in ended(simulations).why


def test_a_simulation_ends_with_its_service() -> None:
    simulations = started(program(WAITS))
    until(lambda: simulations._process is not None)
    process = simulations._process
    assert process is not None
    simulations.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)
    assert ended(simulations).why == "the service is stopping"
    with pytest.raises(GuardrailRefused, match="starting or stopping"):
        simulations.start(ASKED, UNEVEN, "eve")


def test_unknown_limits_are_refused_at_once() -> None:
    with Simulations(program(WAITS)) as simulations:
        with pytest.raises(GuardrailRefused, match="starting or stopping"):
            simulations.start(ASKED, UNEVEN, "eve")
        simulations.settings = Settings()
        unknown = ASKED.model_copy(update={"policies": ("nothing",)})
        with pytest.raises(ConfigError, match="nothing"):
            simulations.start(unknown, UNEVEN, "eve")
        assert simulations.newest is None
