"""Compiled loops are cached on disk, and waiting for the compiler is announced."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import numba

from solver.kernels.arithmetic import exponential
from solver.kernels.compiled import sources_version
from tests.support.paths import ROOT

LOOP = "from solver.kernels.arithmetic import exponential; print(exponential(0.0))"


def run(**environment: str) -> subprocess.CompletedProcess[str]:
    """Run one small loop in its own process."""
    return subprocess.run(
        [sys.executable, "-c", LOOP],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )


def test_compilation_is_announced_only_when_nothing_is_cached(tmp_path: Path) -> None:
    first, second = (run(NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert first.stderr == ("compiling the planner's loops, once on this machine: up to a minute\n")
    assert second.stderr == ""
    assert first.stdout == second.stdout == "1.0\n"


def test_loops_cached_beside_their_modules_are_read_where_numba_writes_elsewhere(
    tmp_path: Path,
) -> None:
    """As in an image, where the folder of the modules is read-only."""
    run(NUMBA_CACHE_DIR="")
    there = {"NUMBA_CACHE_LOCATOR_CLASSES": "UserWideCacheLocator", "XDG_CACHE_HOME": str(tmp_path)}
    elsewhere = run(NUMBA_CACHE_DIR="", **there)
    assert elsewhere.stdout == "1.0\n"
    assert elsewhere.stderr == ""


def test_cached_loops_hold_for_any_processor_of_the_architecture() -> None:
    _, *target = cast("Any", exponential).dispatcher.targetctx.codegen().magic_tuple()
    assert target == ["generic", ""]


def test_loops_are_compiled_without_a_writable_cache_folder() -> None:
    """The only cache location allowed is a zip file, and the source is not in one."""
    nowhere = run(NUMBA_CACHE_LOCATOR_CLASSES="ZipCacheLocator")
    assert nowhere.stdout == "1.0\n"
    assert "no folder can be written" in nowhere.stderr
    assert "NUMBA_CACHE_DIR" in nowhere.stderr


def test_a_change_to_any_kernel_invalidates_the_cache() -> None:
    """A cached loop contains its callees, which numba does not check."""
    dispatcher: Any = exponential
    version = dispatcher.dispatcher._cache._cache_file._own._version
    assert version == sources_version()
    assert version.startswith(numba.__version__)
    assert len(version) > len(numba.__version__) + 60
