#!/usr/bin/env -S python3 -I
"""Exit with 0 where the service of this container answers a probe: `livez` or `readyz`.

It asks over the control socket, which needs neither TLS nor a login, by the standard library alone.
"""

import http.client
import os
import socket
import sys
from pathlib import Path

TIMEOUT_S = 4.0


def socket_path() -> str:
    """Path of the control socket."""
    volume = os.environ.get("PLIMSOLL_VOLUME_HOME", "/mnt/plimsoll")
    state = os.environ.get("PLIMSOLL_STATE_DIR") or f"{volume}/state"
    return str(Path(state, "control.sock"))


def answer(probe: str) -> tuple[int, str]:
    """Status and text of the answer. Raises OSError or HTTPException where there is none."""
    connection = http.client.HTTPConnection("localhost", timeout=TIMEOUT_S)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.settimeout(TIMEOUT_S)
    connection.sock.connect(socket_path())
    connection.request("GET", f"/{probe}")
    found = connection.getresponse()
    return found.status, found.read().decode("utf-8", "replace").strip()


if __name__ == "__main__":
    try:
        status, text = answer(sys.argv[1] if sys.argv[1:] else "livez")
    except (OSError, http.client.HTTPException) as exc:
        sys.exit(f"the service does not answer: {exc}")
    if status != 200:
        sys.exit(text)
