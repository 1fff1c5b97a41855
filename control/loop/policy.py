"""The loop's next step, and the phase that follows, as pure functions of its state."""

import math
from dataclasses import dataclass, field, replace
from enum import StrEnum, auto
from typing import Final, NamedTuple

from control.loop.load_shift import BURST_S, PATIENCE_S, PREPARE_S, LoadShift
from control.loop.oscillation import Oscillation
from control.loop.questions import approve_words
from control.loop.view import Mode, Phase
from control.planning.plan_needs import PlanNeed, Reason
from control.planning.validate import spread_text
from control.settings.auto_limits import AutoLimits, refusals
from control.settings.trigger_table import Response, Trigger, TriggerTable
from model.evaluate import Evaluation
from model.plan.plan import Plan, PlanStatus
from model.units import count_text, seconds_text
from solver.report.result import Result

SILENCE_S: Final = 120.0
"""Loads that are older than this decide nothing."""
AHEAD_S: Final = 5.0
"""Neither do loads that are further ahead of the clock: whether they are newer than a run, or a
shift, is not known. Hosts that keep time by NTP differ by far less."""
_MOMENT_S: Final = 1e-3
"""After a wait, in which rounding hides its end."""


class Decision(StrEnum):
    """The loop's next step."""

    SETTLE = auto()
    """Wait until loads cover only the time after the last run."""
    REST = auto()
    """Balanced: nothing to do."""
    IGNORE = auto()
    """Every trigger that fires is off."""
    CONFIRM = auto()
    """Out of tolerance, but not for long enough yet for `--auto` to act."""
    PLAN = auto()
    HOLD = auto()
    """The last solve found no moves; its result is kept until its inputs change."""
    RETRY = auto()
    """`--auto` waits after a failure."""
    OFFER = auto()
    """Show the plan and wait for the operator."""
    APPROVE = auto()
    REFUSE = auto()
    """The plan is outside the limits of `--auto`."""
    ASK = auto()
    """The plan waits for a person: its trigger is set to `ask`."""
    ENDED = auto()
    """`--auto` has ended; only recorded, as the last step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionInputs:
    """Inputs of a decision. Times are seconds of a clock that is never set."""

    now_s: float
    mode: Mode
    limits: AutoLimits
    loads_from_s: float
    """Start of the window that the newest loads are averaged over."""
    needs: tuple[PlanNeed, ...]
    """Why the cluster needs a plan, the most urgent reason first."""
    triggers: TriggerTable = field(default_factory=TriggerTable)
    """What `--auto` does about each of them."""
    held: frozenset[Trigger] = frozenset()
    """Triggers for which the newest inputs have no plan that `--auto` may execute."""
    overridden_by: Trigger | None = None
    """The trigger that interrupted the last run, and that its pause does not hold back."""
    made_for: frozenset[Trigger] | None = None
    """Triggers that the newest result was made to act on; empty if it was made to ask,
    None before a result of `--auto`."""
    unavailable: str = ""
    """Clause on partitions without a replica to copy from, by name; empty if there are none."""
    needed_since_s: float | None
    """None while no plan is needed."""
    awaited: str
    """Sentence on a dead broker that may still return; empty if there is none."""
    awaited_s: tuple[float, ...] = ()
    """Time until each of these brokers is given up, the shortest first."""
    was_balanced: bool
    """The cluster was balanced before that, so the load has shifted."""
    shift: LoadShift = field(default_factory=LoadShift)
    """What the newest samples say about that shift."""
    silent_s: float = 0.0
    """Time since the newest loads arrived."""
    ahead_s: float = 0.0
    """Time by which the newest loads, or the samples left out in their place, are ahead of the
    clock."""
    shifted_since_plan: bool = False
    """The load has changed since the plan was made."""
    ended_at_s: float | None
    """End of the last run, None if there was none."""
    copying: int = 0
    """Partitions that are being moved outside of a run."""
    copied_at_s: float | None = None
    """When partitions were last seen to be; None for never."""
    plan: Plan | None
    outdated: bool
    """Brokers or placement have changed since the plan was made."""
    answered: bool
    """The inputs of the newest result have not changed by more than noise."""
    solve_in_s: float
    """Time until the next solve is due, after solves that were of no use."""
    quiet_in_s: float
    """Time until the set of live brokers counts as stable."""
    retry: str
    """Reason why `--auto` waits before it retries; empty if it does not wait."""
    retry_s: float = 0.0
    """Time until it does."""
    plan_wanted: bool
    """The operator requested a new plan."""
    oscillation: Oscillation = field(default_factory=Oscillation)
    """Whether runs have thrown brokers from one side of their tolerance to the other."""
    closed: str = ""
    """Why the schedule allows no run now, and until when; empty where it does."""
    opens_in_s: float = 0.0
    """Time until the schedule allows a run; inf where it never will."""
    exempt: frozenset[Trigger] = frozenset()
    """Triggers that the schedule does not hold back."""
    runs_wait_s: float = 0.0
    """Time until `runs_per_day` allows another run."""
    bytes_wait_s: float = 0.0
    """Time until `bytes_per_day` allows a run of the plan."""
    runs_left: int | None = None
    """Runs that `runs_per_day` allows now; None without that limit, or where nothing is counted."""
    bytes_left: int | None = None
    """Bytes that `bytes_per_day` allows now; None as above."""
    paused: str = ""
    """Who has paused `--auto`, and how it continues; empty without a pause."""

    @property
    def acting(self) -> tuple[PlanNeed, ...]:
        """Needs that `--auto` may act on by itself now; in other modes all."""
        if self.mode is not Mode.AUTO:
            return self.needs
        found = self._answered_by(Response.ACT)
        return tuple(n for n in found if n.trigger not in self.held and not self._closed_for(n))

    @property
    def pursued(self) -> tuple[PlanNeed, ...]:
        """Needs that the next plan is for: those to act on, else those to ask about.

        Where neither are left, those to act on that have no such plan.
        """
        if self.mode is not Mode.AUTO:
            return self.needs
        return self.acting or self._answered_by(Response.ASK) or self._answered_by(Response.ACT)

    @property
    def ignored(self) -> tuple[PlanNeed, ...]:
        """Needs whose trigger is off."""
        return () if self.mode is not Mode.AUTO else self._answered_by(Response.OFF)

    @property
    def acts(self) -> frozenset[Trigger]:
        """Triggers that the next plan acts on; empty if it is made to ask."""
        pursued = {need.trigger for need in self.pursued}
        acted = (t for t in pursued if self.triggers.response(t) is Response.ACT)
        return frozenset(acted)

    @property
    def fits(self) -> bool:
        """Whether the newest result was made for the needs that are pursued now."""
        if self.mode is not Mode.AUTO or self.made_for is None:
            return True
        return self.acts <= self.made_for and bool(self.acts) == bool(self.made_for)

    @property
    def repairs(self) -> bool:
        """Whether the next plan is for something that is broken, whatever it gains."""
        return any(need.repairs for need in self.pursued)

    @property
    def is_copied(self) -> bool:
        """Whether loads decide that were measured while partitions were moved outside of a run."""
        copied_at_s, auto = self.copied_at_s, self.mode is Mode.AUTO
        mixed = copied_at_s is not None and self.loads_from_s < copied_at_s
        return auto and mixed and bool(self.pursued) and not self.repairs

    @property
    def pause_s(self) -> float:
        """Time between two runs: longer than `pause` where runs only move an imbalance about.

        Repairs wait for `pause` alone.
        """
        return self.limits.pause * (1 if self.repairs else 2**self.oscillation.doublings)

    @property
    def held_by_schedule(self) -> bool:
        """Whether all needs that the next plan would act on wait for the schedule."""
        return bool(self.acts) and all(self._closed_for(need) for need in self.pursued)

    def _closed_for(self, need: PlanNeed) -> bool:
        return bool(self.closed) and need.trigger not in self.exempt

    def _answered_by(self, response: Response) -> tuple[PlanNeed, ...]:
        return tuple(n for n in self.needs if self.triggers.response(n.trigger) is response)


def next_step(facts: DecisionInputs) -> tuple[Decision, str]:
    """Return the next step, and its reason in words; empty where it is obvious."""
    if unknown := _unknown(facts):
        return Decision.SETTLE, unknown
    if facts.plan_wanted:
        return Decision.PLAN, "requested by the operator"
    auto, offered = facts.mode is Mode.AUTO, facts.plan is not None and facts.plan.moves
    if not facts.pursued and (auto or not offered):
        return _at_rest(facts) if auto else (Decision.REST, "")
    if auto and facts.retry:
        return Decision.RETRY, facts.retry
    if auto and facts.needed_since_s is not None:
        wait = not_yet(facts, facts.needed_since_s)
        if wait and not _prepares(facts, facts.needed_since_s):
            return Decision.CONFIRM, wait.words
        if wait:
            return _plan(facts, wait.words)
    if facts.plan is not None and facts.plan.moves:
        return _with_plan(facts, facts.plan)
    if facts.answered and facts.fits:
        return Decision.HOLD, ""
    return _plan(facts, "; ".join(need.message for need in facts.pursued))


def will_replace(facts: DecisionInputs) -> bool:
    """Whether another plan is made as soon as brokers are stable and the next solve is due."""
    return next_step(replace(facts, quiet_in_s=0.0, solve_in_s=0.0))[0] is Decision.PLAN


def earliest_change_s(facts: DecisionInputs, step: Decision) -> float:
    """Seconds after which waiting alone may change a decision; 0 where it never does.

    It follows from the decision itself, for each moment at which one of its waits ends.
    """
    if step in (Decision.PLAN, Decision.APPROVE, Decision.OFFER):
        return 0.0
    if step in (Decision.REST, Decision.IGNORE):
        return min(facts.awaited_s, default=0.0)
    hopeful = replace(facts, shift=facts.shift.hopeful)
    if hopeful.shift != facts.shift and next_step(hopeful)[0] is not step:
        # The next samples may.
        return 0.0
    waits = sorted({wait_s for wait_s in _waits(hopeful) if 0 < wait_s < math.inf})
    changes = (w for w in waits if next_step(_later(hopeful, w + _MOMENT_S))[0] is not step)
    return next(changes, 0.0)


def _waits(facts: DecisionInputs) -> tuple[float, ...]:
    """Seconds until each wait of a decision ends, whether or not it decides now."""
    ended_at_s, since_s = facts.ended_at_s, facts.needed_since_s
    found = [
        *facts.awaited_s,
        facts.retry_s,
        facts.quiet_in_s,
        facts.solve_in_s,
        facts.opens_in_s,
        facts.runs_wait_s,
        facts.bytes_wait_s,
        facts.shift.left_s,
        facts.shift.left_s - PREPARE_S,
    ]
    if ended_at_s is not None:
        found += [ended_at_s - facts.loads_from_s, ended_at_s + facts.pause_s - facts.now_s]
        found += [ended_at_s + facts.limits.pause - facts.now_s]
    if facts.copied_at_s is not None and not facts.copying:
        found.append(facts.copied_at_s - facts.loads_from_s)
    if since_s is not None:
        needed_s = facts.now_s - since_s
        ends = (facts.limits.confirm, BURST_S, PATIENCE_S)
        found += [since_s - facts.loads_from_s, *(end_s - needed_s for end_s in ends)]
    return tuple(found)


def _later(facts: DecisionInputs, seconds: float) -> DecisionInputs:
    """The inputs after more time, in which loads stay as they are and nothing else happens."""
    shift, awaited_s = facts.shift, tuple(w - seconds for w in facts.awaited_s if w > seconds)
    if shift.level_s is not None:
        shift = replace(shift, level_s=shift.level_s + seconds)
    given_up = len(awaited_s) < len(facts.awaited_s)
    dead = PlanNeed(reason=Reason.DEAD_BROKER, message="a broker is dead")
    opens_in_s = max(0.0, facts.opens_in_s - seconds)
    return replace(
        facts,
        now_s=facts.now_s + seconds,
        loads_from_s=facts.loads_from_s + seconds,
        shift=shift,
        copied_at_s=facts.now_s + seconds if facts.copying else facts.copied_at_s,
        needs=(dead, *facts.needs) if given_up else facts.needs,
        awaited=facts.awaited if awaited_s else "",
        awaited_s=awaited_s,
        retry=facts.retry if facts.retry_s > seconds else "",
        retry_s=max(0.0, facts.retry_s - seconds),
        quiet_in_s=max(0.0, facts.quiet_in_s - seconds),
        solve_in_s=max(0.0, facts.solve_in_s - seconds),
        closed=facts.closed if opens_in_s else "",
        opens_in_s=opens_in_s,
        runs_wait_s=max(0.0, facts.runs_wait_s - seconds),
        bytes_wait_s=max(0.0, facts.bytes_wait_s - seconds),
    )


def _unknown(facts: DecisionInputs) -> str:
    """Why the newest loads decide nothing; empty where they do."""
    if facts.mode is Mode.AUTO and facts.ahead_s > AHEAD_S:
        return ahead_words(facts.ahead_s)
    if facts.mode is Mode.AUTO and facts.silent_s > SILENCE_S:
        return f"no loads have arrived for {seconds_text(facts.silent_s)}; waiting for new ones"
    if facts.ended_at_s is not None and facts.loads_from_s < facts.ended_at_s:
        left_s = facts.ended_at_s - facts.loads_from_s
        return f"waiting {left_s:.0f} s for loads of the new placement"
    if facts.is_copied:
        if facts.copying:
            which = count_text(facts.copying, "partition is", "partitions are")
            return f"{which} being moved outside of a run; waiting for loads from after that"
        left_s = (facts.copied_at_s or 0.0) - facts.loads_from_s
        words = "partitions were moved outside of a run"
        return f"{words}; waiting {left_s:.0f} s for loads from after that"
    return ""


def ahead_words(ahead_s: float) -> str:
    """By how much the newest samples are ahead of the clock, and what to do about it."""
    return (
        f"the newest samples are {seconds_text(ahead_s)} ahead of this machine's clock, so that "
        "their loads cannot be trusted; compare the clocks of all hosts that watch this cluster"
    )


def _at_rest(facts: DecisionInputs) -> tuple[Decision, str]:
    off = [f"{need.message}, but {need.trigger} is off" for need in facts.ignored]
    why = "; ".join(filter(None, (*off, facts.awaited, facts.unavailable)))
    return Decision.IGNORE if off else Decision.REST, why


def _with_plan(facts: DecisionInputs, plan: Plan) -> tuple[Decision, str]:
    if facts.quiet_in_s > 0:
        return Decision.SETTLE, _unsteady(facts)
    if facts.outdated:
        return _plan(facts, "brokers or placement changed since the plan was made")
    if facts.mode is not Mode.AUTO:
        return Decision.OFFER, ""
    if facts.shifted_since_plan and facts.acts:
        return _plan(facts, "the load changed since the plan was made")
    if not facts.fits:
        return _plan(facts, "; ".join(need.message for need in facts.pursued))
    reasons = refusals(plan, facts.limits, repairs=facts.repairs)
    if not facts.acts:
        # Like an operator's, a waiting plan is not replaced by time or by noise.
        words = f"{asked_words(facts)}{approve_words(plan.hash)}"
        return Decision.ASK, "; ".join((words, *reasons))
    if not reasons:
        return _unless_held(facts)
    if facts.answered:
        return Decision.REFUSE, "; ".join(reasons)
    return _plan(facts, "the cluster changed since the last plan")


def _unless_held(facts: DecisionInputs) -> tuple[Decision, str]:
    """Approve the plan, unless a limit per day or a person holds back its run."""
    if facts.bytes_wait_s > 0:
        return Decision.CONFIRM, _day_words("bytes_per_day", facts.bytes_wait_s)
    if facts.paused:
        return Decision.CONFIRM, facts.paused
    return Decision.APPROVE, ""


def asked_words(facts: DecisionInputs) -> str:
    """Which triggers leave the plan to a person: `rule_violated is set to ask`."""
    names = list(dict.fromkeys(need.trigger.value for need in facts.pursued))
    return f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} set to ask"


def _plan(facts: DecisionInputs, why: str) -> tuple[Decision, str]:
    """Plan, unless brokers join and leave, or recent plans were soon outdated."""
    if facts.quiet_in_s > 0:
        return Decision.SETTLE, _unsteady(facts)
    if facts.solve_in_s > 0:
        return Decision.SETTLE, (
            f"{why}; planning again in {seconds_text(math.ceil(facts.solve_in_s))}"
        )
    return Decision.PLAN, why


def _unsteady(facts: DecisionInputs) -> str:
    left = seconds_text(math.ceil(facts.quiet_in_s))
    return f"brokers joined or left; planning once they are stable for another {left}"


class Wait(NamedTuple):
    """What `--auto` waits for."""

    rule: str
    """The setting that makes it wait."""
    words: str


def not_yet(facts: DecisionInputs, needed_since_s: float) -> Wait | None:
    """The first reason why `--auto` may not act yet; None if it may."""
    if facts.awaited and not any(need.is_urgent for need in facts.pursued):
        return Wait("dead_broker_after", facts.awaited)
    if facts.held_by_schedule:
        return Wait("schedule", facts.closed)
    if not facts.repairs and (words := _unconfirmed(facts, needed_since_s)):
        return Wait("confirm", words)
    overrides = any(need.trigger is facts.overridden_by for need in facts.pursued)
    if facts.ended_at_s is not None and not overrides:
        rested_s = facts.now_s - facts.ended_at_s
        if rested_s < facts.pause_s:
            words = f"the last run ended {rested_s:.0f} s ago; {_pause_words(facts)}"
            return Wait("pause", words)
    if facts.acts and facts.runs_wait_s > 0:
        return Wait("runs_per_day", _day_words("runs_per_day", facts.runs_wait_s))
    return None


def _pause_words(facts: DecisionInputs) -> str:
    words = f"the pause between runs is {facts.pause_s:.0f} s"
    if facts.pause_s == facts.limits.pause:
        return words
    return (
        f"{words} instead of {facts.limits.pause:.0f} s, because after each of the last "
        f"{facts.oscillation.in_a_row} runs a broker left its tolerance on the other side"
    )


def _prepares(facts: DecisionInputs, needed_since_s: float) -> bool:
    """Whether to plan already, since only a burst that is about to last is waited for."""
    shift = facts.shift
    if not facts.was_balanced or shift.level_s is None or not 0 < shift.left_s <= PREPARE_S:
        return False
    if (facts.answered and facts.fits) and not facts.shifted_since_plan:
        return False
    lasted = replace(shift, level_s=shift.level_s + shift.left_s)
    later = replace(facts, shift=lasted, now_s=facts.now_s + shift.left_s)
    return not_yet(later, needed_since_s) is None


def _day_words(limit: str, wait_s: float) -> str:
    return f"{limit} is reached; the next run may start in {seconds_text(math.ceil(wait_s))}"


def _unconfirmed(facts: DecisionInputs, needed_since_s: float) -> str:
    """Why loads do not yet show reliably that a plan is needed; empty if they do."""
    needed_s = facts.now_s - needed_since_s
    mixed_s = needed_since_s - facts.loads_from_s
    if facts.was_balanced and mixed_s > 0 and facts.shift.level_s is None:
        # A plan for a mixture of old and new loads would need a second one soon.
        return f"the load has shifted; waiting {mixed_s:.0f} s for loads since then"
    doubt = facts.shift.doubt(needed_s) if facts.was_balanced else facts.shift.early
    if doubt:
        return doubt
    confirm_s = facts.limits.confirm
    if needed_s < confirm_s:
        return f"out of tolerance for {needed_s:.0f} s; --auto acts after {confirm_s:.0f} s"
    return ""


class Status(NamedTuple):
    """A phase, its message and the level of its log line."""

    phase: Phase
    message: str
    level: str = "info"


def after_decision(
    step: Decision, why: str, evaluation: Evaluation, result: Result | None
) -> Status:
    """Status after a decision that neither plans nor approves."""
    summary = result.summary() if result else ""
    spread = spread_text(evaluation)
    match step:
        case Decision.SETTLE:
            return Status(Phase.SETTLING, why)
        case Decision.IGNORE:
            return Status(Phase.NO_PLAN, f"{spread}; {why}")
        case Decision.REST:
            return Status(Phase.BALANCED, "; ".join(filter(None, (spread, why))))
        case Decision.CONFIRM:
            return Status(Phase.MEASURING, f"{spread}; {why}")
        case Decision.REFUSE:
            return Status(Phase.NO_PLAN, f"not approved: {why}", "warning")
        case Decision.RETRY:
            return Status(Phase.NO_PLAN, why, "warning")
        case Decision.HOLD:
            return Status(Phase.NO_PLAN, summary)
        case Decision.ASK:
            return Status(Phase.PLAN_READY, f"{summary}; waiting for approval: {why}")
        case _:
            return Status(Phase.PLAN_READY, summary)


def after_result(result: Result) -> Status:
    """Status after the result of a solve."""
    if result.best is not None and result.best.moves:
        return Status(Phase.PLAN_READY, result.summary())
    if result.status is PlanStatus.ALREADY_BALANCED:
        return Status(Phase.BALANCED, result.summary())
    return Status(Phase.NO_PLAN, result.summary())
