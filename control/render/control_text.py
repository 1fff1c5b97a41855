"""What `ctl status` prints."""

from collections.abc import Iterator

from control.cli.output_types import CtlStatusAnswer
from model.units import bytes_text, count_text, seconds_text


def control_text(answer: CtlStatusAnswer, of: str = "") -> str:
    """One line for each thing that a person may act on.

    of: options that name the service, with a blank before them.
    """
    return "".join(f"{line}\n" for line in _lines(answer, of))


def _lines(answer: CtlStatusAnswer, of: str) -> Iterator[str]:
    cluster = answer.name or answer.cluster_id or "a cluster not seen yet"
    mode = f", {answer.mode}" if answer.mode is not None else ""
    yield f"{cluster}{mode}; plimsoll {answer.version}, process {answer.pid}"
    if answer.phase is None:
        yield "starting"
    else:
        yield f"{answer.phase}: {answer.message}"
    if answer.not_ready:
        yield f"not ready: {answer.not_ready}"
    if (standby := answer.standby) is not None:
        yield (
            "leads the services on this cluster" if standby.leads else f"standby: {standby.message}"
        )
        if standby.other_policy:
            yield "the leader acts by another policy or version than this service would"
    if answer.paused is not None:
        yield f"paused by {answer.paused.by} since {answer.paused.at}; plimsoll ctl resume{of}"
    run = answer.run
    if run is not None:
        left = f", about {seconds_text(run.left_s)} left" if run.left_s is not None else ""
        reason = f": {run.reason}" if run.reason else ""
        moves = f"{run.done} of {count_text(run.moves, 'move')} done, {run.in_flight} in flight"
        yield f"run {run.run_id} {run.state}{reason}; {moves}{left} (plan {run.plan_hash[:12]})"
    for plan in answer.waiting:
        short = plan.plan_hash[:12]
        size = "an unknown size" if plan.bytes_to_copy is None else bytes_text(plan.bytes_to_copy)
        how = f"approved by {plan.approved_by}" if plan.approved_by else "waits for approval"
        yield f"plan {short} {how}: {count_text(plan.moves, 'move')}, {size} to copy"
        if not plan.approved_by:
            yield f"  plimsoll ctl approve {short}{of}, or plimsoll ctl reject {short}{of}"
    if (left_run := answer.interrupted) is not None:
        moves = f"{left_run.done} of {count_text(left_run.moves, 'move')} done"
        yield (
            f"run {left_run.run_id} was interrupted, {moves}; plimsoll service --resume continues "
            f"it, plimsoll rollback {left_run.run_id} undoes it"
        )
