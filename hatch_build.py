"""Puts the planner's compiled loops into a wheel, where `PLIMSOLL_LOOPS` names their folder."""

import os
import platform
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledLoops(BuildHookInterface):  # type: ignore[type-arg]
    """They hold for one version of Python, and for any processor of one architecture."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add them, and name what the wheel is for."""
        folder = os.environ.get("PLIMSOLL_LOOPS")
        if not folder:
            return
        build_data["force_include"][folder] = "solver/kernels/__pycache__"
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        if sys.platform == "linux":
            # They call numba alone, whose wheels are for this platform.
            python = f"cp{sys.version_info.major}{sys.version_info.minor}"
            build_data["infer_tag"] = False
            build_data["tag"] = f"{python}-{python}-manylinux_2_28_{platform.machine()}"
