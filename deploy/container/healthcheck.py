"""Ask for the state of Cruise Control's API, as Strimzi's own probe does.

It uses the standard library alone and takes a tenth of a second: Strimzi gives probes five seconds.
"""

import base64
import os
import ssl
import sys
import urllib.request
from pathlib import Path

TIMEOUT_S = 4.0
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
"""The image is laid out below it: /opt/cruise-control is this folder."""


def is_on(name: str) -> bool:
    """Whether a variable of Strimzi is on, as it is by default."""
    return os.environ.get(name, "true") == "true"


def ask() -> None:
    """Raise OSError or ValueError unless the API answers."""
    port = os.environ.get("API_PORT", "9090")
    path = os.environ.get("API_HEALTHCHECK_PATH", "/kafkacruisecontrol/state")
    # Variables of proxies are meant for other hosts.
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
    scheme = "http"
    if is_on("STRIMZI_CC_API_SSL_ENABLED"):
        scheme = "https"
        certificate = ROOT / "etc/cruise-control/cc-certs/cruise-control.crt"
        context = ssl.create_default_context(cafile=str(certificate))
        # The file has the server's certificate, and need not have its issuer's.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        handlers.append(urllib.request.HTTPSHandler(context=context))
    request = urllib.request.Request(f"{scheme}://localhost:{port}{path}")  # noqa: S310
    if is_on("STRIMZI_CC_API_AUTH_ENABLED"):
        password = (HERE / "api-auth-config" / "healthcheck.password").read_text().strip()
        name = os.environ.get("API_HEALTHCHECK_USERNAME", "healthcheck")
        login = base64.b64encode(f"{name}:{password}".encode()).decode()
        request.add_header("Authorization", f"Basic {login}")
    with urllib.request.build_opener(*handlers).open(request, timeout=TIMEOUT_S) as answer:
        answer.read()


if __name__ == "__main__":
    try:
        ask()
    except (OSError, ValueError) as exc:
        sys.exit(f"plimsoll: the API does not answer: {exc}")
