"""The client of the control socket: requests to the service of a state folder."""

import errno
import http.client
import json
import os
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from control.cli.output_types import Answer
from control.service.control_socket import FILE, ROOT, login_name, peer_of, short_path
from model import errors
from model.errors import ConfigError, GuardrailRefused, PlimsollError, ServiceUnreachable
from model.printable import printable

TIMEOUT_S: Final = 30.0
"""For each part of a response; the service answers within seconds."""
AGAIN_S: Final = 0.02
MOST_ANSWER: Final = 256 * 1024 * 1024
"""Bytes of a response."""
ERROR_HEADER: Final = "Plimsoll-Error"
WARNING_HEADER: Final = "Plimsoll-Warning"
_OK: Final = 200
A = TypeVar("A", bound=Answer)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        deadline_s = time.monotonic() + TIMEOUT_S
        with short_path(self._path) as short:
            while True:
                try:
                    self.sock.connect(short)
                    return self._check_owner()
                except BlockingIOError as exc:
                    # Many clients connect at once, and the queue is full.
                    if time.monotonic() > deadline_s:
                        raise TimeoutError from exc
                    time.sleep(AGAIN_S)

    def _check_owner(self) -> None:
        """Raise GuardrailRefused where neither this user nor root listens.

        Root also asks the service of the folder's owner.
        """
        trusted = {os.geteuid(), ROOT}
        if os.geteuid() == ROOT:
            trusted.add(self._path.parent.stat().st_uid)
        # Where the platform does not report who listens, the file says who made it.
        listens = peer_of(self.sock).uid
        owner = self._path.stat().st_uid if listens is None else listens
        if owner not in trusted:
            raise GuardrailRefused(
                f"{self._path} belongs to the user {login_name(owner) or owner}: nothing was sent. "
                "Run this as that user, or set state_dir to the folder of your own service"
            )


class ControlClient:
    """Requests to the service of one state folder.

    Each raises ServiceUnreachable where none answers, GuardrailRefused where another user's process
    listens, and the error that the service names.
    """

    def __init__(self, state_dir: Path) -> None:
        self._folder, self._path = state_dir, state_dir / FILE

    def get(self, path: str, answer: type[A]) -> A:
        """A document."""
        return self._answer("GET", path, None, answer)

    def act(self, action: str, request: Mapping[str, Any], answer: type[A]) -> A:
        """Request an action, and wait until it is done."""
        body = json.dumps(request).encode()
        return self._answer("POST", f"/control/v1/actions/{action}", body, answer)

    def _answer(self, method: str, path: str, body: bytes | None, answer: type[A]) -> A:
        status, error, data, warning = self._exchange(method, path, body)
        if status != _OK:
            raise _error(error, data)
        if warning:
            sys.stderr.write(f"plimsoll: warning: {printable(warning)}\n")
        try:
            return answer.model_validate_json(data)
        except ValidationError as exc:
            raise ServiceUnreachable(
                f"the service of {self._folder} answers in a form that this version does not know; "
                "use the plimsoll that it was started with"
            ) from exc

    def _exchange(self, method: str, path: str, body: bytes | None) -> tuple[int, str, bytes, str]:
        connection = _UnixConnection(self._path)
        try:
            connection.request(method, path, body)
            response = connection.getresponse()
            data = response.read(MOST_ANSWER)
            error, warning = (response.getheader(n, "") for n in (ERROR_HEADER, WARNING_HEADER))
            return response.status, error, data, warning
        except (OSError, http.client.HTTPException) as exc:
            raise ServiceUnreachable(self._why_not(exc)) from exc
        finally:
            connection.close()

    def _why_not(self, exc: Exception) -> str:
        number = exc.errno if isinstance(exc, OSError) else None
        if number == errno.ENOENT:
            return (
                f"no plimsoll service runs with the state folder {self._folder}; start it with "
                "plimsoll service, or set state_dir as the service has it"
            )
        if number == errno.ECONNREFUSED:
            return f"the plimsoll service of {self._folder} has been killed; start it again"
        if number in (errno.EACCES, errno.EPERM):
            return f"{self._path} belongs to another user; run this as the service's user"
        if isinstance(exc, TimeoutError):
            return f"the plimsoll service of {self._folder} has not answered for {TIMEOUT_S:.0f} s"
        reason = getattr(exc, "strerror", None) or str(exc) or type(exc).__name__
        return f"the plimsoll service of {self._folder} does not answer: {reason}"


def _error(name: str, data: bytes) -> PlimsollError:
    """The error that the service has named."""
    message = printable(data[:10_000].decode("utf-8", "replace").strip())
    found = getattr(errors, name, None)
    if isinstance(found, type) and issubclass(found, PlimsollError):
        return found(message)
    return GuardrailRefused(message) if not name else ConfigError(message)
