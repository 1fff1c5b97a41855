"""What `run` and `service` share: the loop without a screen, from its options to its exit code."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from control.cli.exit_codes import Exit, exit_of_plan
from control.cli.invocation import load_settings, with_overrides
from control.cli.output import Form
from control.loop.view import Mode
from control.settings.auto_limits import AutoLimits, limits_at_effort
from control.settings.auto_policy import policy_faults
from control.settings.policy_file import PolicyFile
from control.settings.settings import Settings, auto_policy, policy_file
from model.errors import ConfigError, GuardrailRefused
from model.run import RunState

if TYPE_CHECKING:
    from control.loop.loop import Loop
    from model.goals.effort import Effort

STOPPED: Final = "a person or a service manager stopped it"
"""Why a loop is closed after a signal."""
LoadSettings = Callable[..., Settings]


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancingOptions:
    """The options of the loop, as typed."""

    setting_flags: dict[str, Any]
    auto: bool
    limits: str | None
    effort: "Effort | None"
    capacity: Path | None
    throttle: str | None
    suspend_balancer: bool
    lower_segment_bytes: bool
    allow_changes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Balancing:
    """The loop as configured."""

    settings: Settings
    mode: Mode
    limits: AutoLimits
    policy_file: PolicyFile | None
    """Where the policy may be changed while the loop runs."""


def configured(options: BalancingOptions, load: LoadSettings = load_settings) -> Balancing:
    """Read the settings, and apply the options.

    load: reads the settings, with the flags of the options.

    Raises ConfigError where they cannot be used, and for `--auto` without limits, or with a policy
    that can never act or has no bounds;
    GuardrailRefused for `--auto` without `--allow-changes`.
    """
    from control import compose

    flags, auto, limits = options.setting_flags, options.auto, options.limits
    settings = with_overrides(
        load(**flags),
        capacity=options.capacity,
        effort=options.effort,
        throttle=options.throttle,
        suspend_balancer=options.suspend_balancer,
        lower_segment_bytes=options.lower_segment_bytes,
    )
    compose.bootstrap_of(settings)
    if auto and limits is None:
        raise ConfigError(
            "--auto starts only with every limit set; add --limits conservative, or "
            "the name of a [limits.NAME] table of the configuration"
        )
    name = "conservative" if limits is None else limits
    named = limits_at_effort(name, settings.limits, options.effort)
    if auto and not options.allow_changes:
        raise GuardrailRefused("--auto changes the cluster; add --allow-changes")
    if auto and (faults := policy_faults(auto_policy(settings, named), time.time())):
        raise ConfigError(
            f"--auto does not start with the limits {name}: {'; '.join(faults)}; "
            "plimsoll policy check FILE explains what a policy allows"
        )
    return Balancing(
        settings=settings,
        mode=Mode.AUTO if auto else Mode.READ_ONLY,
        limits=named,
        policy_file=policy_file(
            flags.get("config"), flags.get("profile"), limits=name, effort=options.effort
        ),
    )


def end_of(loop: "Loop", output: Form | None) -> int:
    """Close the loop; print its last report, or raise its error. Returns the exit code.

    output: how to print the report; None to leave it out.
    """
    from control.cli.plan_execution import print_report
    from control.loop.view import Phase

    if loop.error is not None:
        raise loop.error
    loop.close()
    if loop.reports and output is None:
        ended = loop.reports[-1].state
        return Exit.DONE if ended is RunState.DONE else Exit.INCOMPLETE
    if loop.reports and output is not None:
        return print_report(loop.reports[-1], output)
    if loop.view.phase is Phase.NO_PLAN and loop.result is not None:
        return exit_of_plan(loop.result.status) or Exit.REFUSED
    return Exit.DONE
