"""`plimsoll service`: the loop without a terminal, with metrics and probes."""

from pathlib import Path
from typing import Annotated, Any

import typer

from control.cli.options import (
    AllowChanges,
    Auto,
    Capacity,
    Limits,
    LowerSegmentBytes,
    Output,
    PlanEffort,
    SuspendBalancer,
    Throttle,
)
from control.cli.output import Form


def service(
    *,
    setting_flags: dict[str, Any],
    auto: Auto = False,
    limits: Limits = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Resume the most recent run first, if it was interrupted."),
    ] = False,
    fleet: Annotated[
        Path | None,
        typer.Option(
            "--fleet", metavar="FILE", help="Serve all clusters of this file in one process."
        ),
    ] = None,
    effort: PlanEffort = None,
    capacity: Capacity = None,
    throttle: Throttle = None,
    suspend_balancer: SuspendBalancer = False,
    lower_segment_bytes: LowerSegmentBytes = False,
    allow_changes: AllowChanges = False,
    output: Output = Form.TABLE,
) -> int:
    """Run the loop of `plimsoll run` until SIGTERM, and serve /metrics, /livez and /readyz.

    `plimsoll ctl` steers it, and SIGHUP reads the settings again. Without --auto it observes and
    plans, and changes nothing.
    """
    from control.cli.balancing import BalancingOptions
    from control.cli.serving import serve

    options = BalancingOptions(
        setting_flags=setting_flags,
        auto=auto,
        limits=limits,
        effort=effort,
        capacity=capacity,
        throttle=throttle,
        suspend_balancer=suspend_balancer,
        lower_segment_bytes=lower_segment_bytes,
        allow_changes=allow_changes,
    )
    if fleet is not None:
        from control.cli.fleet_serving import serve_fleet

        return serve_fleet(fleet, options, output, resume=resume)
    return serve(options, output, resume=resume)
