"""Puts the planner's compiled loops into a wheel, where `PLIMSOLL_LOOPS` names their folder."""

import os
import platform
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags


class CompiledLoops(BuildHookInterface):  # type: ignore[type-arg]
    """The loops hold for one version of Python, and for any processor of one architecture."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add them, and name what the wheel is for."""
        folder = os.environ.get("PLIMSOLL_LOOPS")
        if not folder:
            return
        tag = next(sys_tags())
        # The loops need only numba, whose wheels for Linux have this platform.
        linux = f"manylinux_2_28_{platform.machine()}"
        made_for = linux if sys.platform == "linux" else tag.platform
        build_data["force_include"][folder] = "solver/kernels/__pycache__"
        build_data["pure_python"] = False
        build_data["tag"] = f"{tag.interpreter}-{tag.abi}-{made_for}"
