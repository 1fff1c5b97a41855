"""Distribution of test files to workers that starts one shared cluster, not one for each."""

from functools import cache
from typing import Final

from xdist.scheduler.loadfile import LoadFileScheduling  # type: ignore[import-untyped]

from tests.support.paths import ROOT

SHARED: Final = "files on the shared cluster"


class OneSharedCluster(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """All files on the shared cluster form one unit of work, each other file is one.

    The brokers of a shared cluster use CPU until the end, also while their worker runs other tests.
    """

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return SHARED if is_on_shared_cluster(file) else file


@cache
def is_on_shared_cluster(file: str) -> bool:
    """Whether tests in this file, named from the root of the repository, use it."""
    return "local_cluster: LocalCluster" in (ROOT / file).read_text("utf-8")
