"""What the screen of a fleet asks: the table of the fleet's service, and one cluster's own."""

import shlex
from pathlib import Path
from typing import Final, NamedTuple

from control.cli.control_client import ControlClient
from control.cli.output_types import CtlStatusAnswer, FleetAnswer, FleetClusterAnswer
from control.service.member_state import MemberState
from model.errors import PlimsollError

DECISIONS: Final = 5
"""Decisions shown of a cluster."""
STEERED: Final = "plimsoll ctl pause{}; also resume, stop, abort, throttle, why, audit\n"


class ClusterDetail(NamedTuple):
    """What the service of one cluster says of itself, as text."""

    status: str = ""
    """As `ctl status`, with commands that name the cluster; or why its service does not answer."""
    brokers: str = ""
    """A table; empty before the first observation."""
    decisions: str = ""
    """The newest ones, oldest first."""


class FleetSource:
    """Requests to the services of a fleet, over their control sockets."""

    def __init__(self, file: Path, state_dir: Path) -> None:
        """file: the fleet's, as commands name it. state_dir: the fleet's."""
        self.file = file
        self._client = ControlClient(state_dir)

    def table(self) -> FleetAnswer:
        """The table. Raises as `ControlClient`."""
        return self._client.get("/control/v1/fleet", FleetAnswer)

    def detail(self, row: FleetClusterAnswer) -> ClusterDetail:
        """What there is to know of one cluster."""
        if not row.state_dir or row.service is MemberState.FAILED:
            return ClusterDetail()
        client = ControlClient(Path(row.state_dir))
        of = f" --fleet {shlex.quote(str(self.file))} --cluster {row.name}"
        from control.render.control_text import control_text

        try:
            status = control_text(client.get("/control/v1/status", CtlStatusAnswer), of)
        except PlimsollError as exc:
            return ClusterDetail(status=f"{exc}\n")
        return ClusterDetail(status + STEERED.format(of), _brokers(client), _decisions(client))


def _brokers(client: ControlClient) -> str:
    from control.cli.output_types import StatusAnswer
    from control.render.cluster_status import brokers_table
    from model.snapshot.snapshot import Resource

    try:
        found = client.get("/api/v1/status?partitions=false", StatusAnswer).brokers
    except PlimsollError:
        return ""  # not observed yet
    shown = [r for r in Resource if any(r in b.load for b in found)]
    return brokers_table(found, shown, in_words=True)


def _decisions(client: ControlClient) -> str:
    from control.cli.commands.why import decisions_text
    from control.cli.output_types import WhyAnswer

    try:
        return decisions_text(client.get(f"/api/v1/why?last={DECISIONS}", WhyAnswer))
    except PlimsollError:
        return ""  # decided nothing yet
