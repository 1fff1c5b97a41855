"""The command line: its commands, their headings and help.

stdout carries data, stderr everything else. Exit codes: 0 done, already balanced, or no
improvement worth its cost; 1 internal error; 2 usage or configuration; 3 cluster not reachable;
4 no feasible plan; 5 refused by a guardrail; 6 stopped or incomplete; 7 the cluster changed
since the plan; 10 moves proposed (with --detailed-exitcode), or a plan of run --auto --once
waits; 130 interrupted.
"""

import gc
import sys
from typing import Final

import typer

from control.cli.command_group import CONTEXT, CommandEntry, CommandGroup
from control.cli.commands.screen import screen
from control.cli.exit_codes import ending_solves, is_full, output_lost
from control.cli.output import safe_streams

_YOUNG_OBJECTS: Final = 50_000
"""Objects that are made before Python looks for garbage among them."""

EXIT_CODES: Final = (__doc__ or "").partition("else. ")[2]

SUMMARIES: Final = {
    "Observe": {
        "status": "Show brokers, their loads and how balanced they are.",
        "fleet": "Show the clusters of a service with --fleet: worst broker, decision, run, data.",
        "why": "Show what run --auto decided last, why, and when it reconsiders.",
        "topics": "Show the load of each topic, and how evenly it is spread over the brokers.",
        "info": "Show which metric sources were detected and which one each load comes from.",
        "record": "Record what is measured on a cluster, for replay.",
        "replay": "Recompute the loads of a recorded state, as if it were live.",
    },
    "Plan": {
        "plan": "Make a plan and prove how good it is. Changes nothing.",
        "verify": "Check a plan, or any reassignment, with code independent of the planner.",
        "explain": "Explain why the plan makes a move, or does not make it.",
        "frontier": "Show how much balance each number of moves buys. Changes nothing.",
        "what-if": "Plan for a hypothetical cluster. Changes nothing.",
        "sign": "Sign a plan, for clusters where plans need a signature.",
        "assign": "Assign the partitions of a new topic to brokers. Changes nothing.",
        "simulate": "Show what policies of run --auto would do over days. Changes nothing.",
    },
    "Change the cluster": {
        "run": "Observe, plan, approve and apply in a loop that keeps the cluster balanced.",
        "service": "Run the loop as a service: with metrics and probes over HTTP, under systemd.",
        "ctl": "Ask the service of the state folder, and steer it: pause, stop, approve, audit.",
        "approve": "Approve a plan of run --auto that waits, or list what waits.",
        "apply": "Execute exactly this plan.",
        "rollback": "Restore the assignment from before a run.",
        "broker": "Add, replace, demote and remove brokers, or exclude them from plans.",
        "disk": "Empty log directories so that disks can be taken out, or heal failed ones.",
        "cluster": "Repair whatever is broken, and move nothing else.",
        "task": "List, show, resume and cancel what was requested of brokers.",
        "topic": "Change the replication factor of topics.",
        "elect-leaders": "Elect preferred leaders where another replica leads.",
        "cleanup": "Restore settings that interrupted runs have left changed.",
    },
    "More": {
        "schema": "Print the JSON schema of a file or of a command's output.",
        "generate": "Generate a synthetic cluster: a recorded state and a load history.",
        "demo": "Start a local Kafka cluster, skew it, balance it, and report.",
        "notify": "Try the receivers of notifications.",
        "login": "Print a login for the HTTP listener of the service.",
        "serve": "Serve the screen to browsers on this machine, read-only.",
        "journal": "Check and repair the journals of runs.",
        "policy": "Check what run --auto may do.",
        "config": "Show how plimsoll is configured.",
    },
}
"""The help of each command, by heading and name."""

FORMER_NAMES: Final = {"assign": "place", "elect-leaders": "elect", "generate": "synthesise"}

GROUPS: Final = {
    "ctl": {
        "status": "Show what the service does now, what waits and what is paused.",
        "why": "Show what the service decided last, why, and when it reconsiders.",
        "tasks": "Show the tasks on brokers of the service.",
        "pause": "Start no run, and no more moves of the run in progress. Restarts keep the pause.",
        "resume": "End a pause.",
        "stop": "End the run in progress after its in-flight moves, and pause.",
        "abort": "End the run in progress, cancel its in-flight moves, and pause.",
        "throttle": "Change the throttle of the run in progress.",
        "approve": "Approve exactly this plan, once; the service executes it.",
        "reject": "Reject the plan that waits. The service does not ask for it again.",
        "reload": "Read the settings again, as after SIGHUP, and say whether they can be used.",
        "audit": "Show what people and clients asked of the service, and how it ended.",
    },
    "journal": {
        "verify": "Report damaged journals and plans, line by line. Exits with 2 if there are any.",
        "repair": "Keep the intact records of a damaged journal. The original stays beside it.",
    },
    "policy": {
        "check": "Explain what the limits and triggers of a file allow. Exits with 2 if they "
        "can never act or have no bounds."
    },
    "broker": {
        "remove": "Move all replicas off brokers, and keep new ones away. Killed at any point, "
        "the same command continues.",
        "add": "Fill new or returned brokers until they are within their tolerance.",
        "replace": "Move the replicas of one broker to another, one for one.",
        "demote": "Let other brokers lead what these lead, and keep leaders away from them.",
        "undemote": "Lift a demotion, and elect the leaders back.",
        "maintenance": "Demote brokers that are about to be stopped, or end that.",
        "exclude": "Put no new replicas on brokers; they keep what they have.",
        "include": "Allow new replicas on brokers again.",
    },
    "disk": {
        "remove": "Move all replicas out of log directories of a broker. Killed at any point, the "
        "same command continues.",
        "heal": "Create the replicas of failed log directories again on other brokers. Killed at "
        "any point, the same command continues.",
        "include": "End the cordons of log directories that disk remove has set.",
    },
    "cluster": {
        "repair": "Move replicas off dead brokers and failed directories, and to where racks, pins "
        "and placements want them. Killed at any point, the same command continues."
    },
    "task": {
        "list": "List the tasks of this state folder, and of the archive if set.",
        "show": "Show a task: its phases, plans and progress.",
        "resume": "Continue a task that was interrupted or failed.",
        "cancel": "Cancel a task; its run stops, and what has moved stays.",
    },
    "topic": {
        "set-replicas": "Give every partition of topics so many replicas. Killed at any point, "
        "the same command continues."
    },
    "notify": {"test": "Send a message to every receiver of the settings, and say who got it."},
    "config": {"show": "Show every setting with its value and where it comes from."},
}
"""The commands of commands that are groups."""


class _Plimsoll(CommandGroup):
    """The commands of plimsoll."""

    entries = tuple(
        CommandEntry(
            name,
            summary,
            heading,
            alias=FORMER_NAMES.get(name),
            commands=tuple(CommandEntry(*row) for row in GROUPS.get(name, {}).items()),
        )
        for heading, summaries in SUMMARIES.items()
        for name, summary in summaries.items()
    )


app = typer.Typer(
    cls=_Plimsoll,
    add_completion=True,
    context_settings=CONTEXT,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Keeps a Kafka cluster balanced: plans with a proof, explains, executes.\n\n"
    "Without a command it opens the screen.",
    epilog=EXIT_CODES,
)
app.callback(invoke_without_command=True)(screen)


def collect_seldom() -> None:
    """Let Python look for garbage less often, which took a tenth of a command's start.

    Nearly all that is made then stays.
    """
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])


def main() -> None:
    """The console script."""
    collect_seldom()
    with ending_solves(), safe_streams():
        try:
            app()
        except OSError as exc:
            # Help and versions are printed outside of any command.
            if not is_full(exc):
                raise
            sys.exit(output_lost(exc))
