"""Several policies on the same simulated cluster, here or on Spark's executors."""

import pickle
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from collector.spark.deployment import SparkSite
from collector.spark.executor_calls import ExecutorCalls
from control.planning.background_call import in_daemon_thread
from control.simulation.outcome import PolicyOutcome
from control.simulation.policy_trial import FOLDER, Trial, TrialPolicy, try_policy

FUNCTION: Final = "control.simulation.trials:try_pickled"
PACKAGES: Final = ("model", "clients", "solver", "executor", "collector", "lab", "control")
"""What the executors need of plimsoll."""
REMOVALS: Final = 100
"""How often a folder is removed that a thread still writes to."""

Passed = Callable[[str, float], None]
"""Called with a policy's name, and the share of its simulation that has passed."""

TryAll = Callable[[Trial, Sequence[TrialPolicy]], Iterator[PolicyOutcome]]
"""Tries policies; yields their outcomes in their order, the same wherever they are tried."""


def trying_in_turn(passed: Passed) -> TryAll:
    """Give what tries one policy after the other in this process.

    The main thread only waits, so that a signal interrupts it even while compiled code plans.
    """

    def try_all(trial: Trial, policies: Sequence[TrialPolicy]) -> Iterator[PolicyOutcome]:
        for policy in policies:
            with _folder() as folder:
                told = partial(passed, policy.name)
                call = partial(try_policy, policy, trial, passed=told, folder=folder)
                found = in_daemon_thread(call).result()
            yield found

    return try_all


@contextmanager
def _folder() -> Iterator[Path]:
    """A new private folder, which is gone after the block, whenever a signal interrupts that."""
    # Its name is known before it is there: a signal may come in between.
    folder = Path(tempfile.gettempdir(), FOLDER + secrets.token_hex(16))
    try:
        folder.mkdir(mode=0o700)
        yield folder
    finally:
        # Once interrupted, the thread of a trial may still write.
        for _ in range(REMOVALS):
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break
            time.sleep(0.01)


def try_pickled(shared: bytes, policy: bytes) -> bytes:
    """Try a pickled `TrialPolicy` in a pickled `Trial`; return the pickled `PolicyOutcome`.

    For processes that other machines run: both arguments must come from plimsoll itself.
    """
    trial, wanted = pickle.loads(shared), pickle.loads(policy)  # noqa: S301 - see above
    return pickle.dumps(try_policy(wanted, trial))


@contextmanager
def trying_on(site: SparkSite, log_file: Path) -> Iterator[TryAll]:
    """Give what tries policies on a Spark, all at once; it ends with the block.

    log_file: where its Java writes. Errors: see `ExecutorCalls`.
    """
    calls = ExecutorCalls(site, PACKAGES, log_file)

    def try_all(trial: Trial, policies: Sequence[TrialPolicy]) -> Iterator[PolicyOutcome]:
        arguments = [pickle.dumps(policy) for policy in policies]
        for answer in calls(FUNCTION, pickle.dumps(trial), arguments):
            outcome: PolicyOutcome = pickle.loads(answer)  # noqa: S301 - of our own code
            yield outcome

    with closing(calls):
        yield try_all
