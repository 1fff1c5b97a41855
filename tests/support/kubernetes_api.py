"""An API server of Kubernetes for leases alone, over HTTPS: versions, conflicts and rights.

Statuses, reasons and messages are those of kube-apiserver: `AlreadyExists` and `Conflict` with 409,
an update without a version with 422, a namespace or Lease that is missing with 404.
"""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from control.service.server_tls import ServerTls
from tests.support.tls_certificates import Authority
from tests.support.web_server import Handler, serving

NAMESPACE = "kafka"
TOKEN = "of-the-account"
PATH = re.compile(r"/apis/coordination\.k8s\.io/v1/namespaces/([^/]+)/leases(?:/([^/]+))?")
MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
VERBS = {"GET": "get", "POST": "create", "PUT": "update"}


@dataclass
class Answer:
    """What the server sends instead of doing what it was asked."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    after_s: float = 0.0
    does: bool = False
    """Whether it does it all the same."""


class KubernetesApi:
    """Its leases, and what it is to answer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        """Where accounts are mounted."""
        self.host, self.port = "127.0.0.1", 0
        self.authority = Authority.make("authority of the cluster")
        self.leases: dict[str, dict[str, Any]] = {}
        """By name, in the one namespace that exists."""
        self.tokens = {TOKEN}
        self.rights = {"get", "create", "update"}
        self.fault: Callable[[str], Answer | None] = lambda _: None
        """Decides about a method."""
        self.conflicts = 0
        self.seen: list[str] = []
        """Method and path of each request."""
        self._versions = 100
        self._lock = threading.Lock()

    def account(self, name: str = "account", namespace: str = NAMESPACE) -> Path:
        """A service account's folder."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        (folder / "token").write_text(f"{TOKEN}\n")
        (folder / "namespace").write_text(namespace)
        self.authority.write(folder / "ca.crt")
        return folder

    @property
    def environment(self) -> dict[str, str]:
        """What a pod has."""
        return {"KUBERNETES_SERVICE_HOST": self.host, "KUBERNETES_SERVICE_PORT": str(self.port)}

    def answer(self, method: str, path: str, token: str, body: bytes) -> tuple[int, Any]:
        """Status and document of a request."""
        with self._lock:
            self.seen.append(f"{method} {path}")
            match = PATH.fullmatch(path)
            if match is None:
                return failed(404, "NotFound", "the server could not find the requested resource")
            if token not in self.tokens:
                return failed(401, "Unauthorized", "Unauthorized")
            namespace, name = match[1], match[2] or ""
            verb = VERBS[method]
            if verb not in self.rights:
                return failed(
                    403,
                    "Forbidden",
                    f'leases.coordination.k8s.io "{name}" is forbidden: User '
                    f'"system:serviceaccount:{namespace}:plimsoll" cannot {verb} resource "leases" '
                    f'in API group "coordination.k8s.io" in the namespace "{namespace}"',
                )
            if verb == "get":
                return self._get(namespace, name)
            return self._write(verb, namespace, name, json.loads(body))

    def _get(self, namespace: str, name: str) -> tuple[int, Any]:
        if namespace != NAMESPACE or name not in self.leases:
            return missing(name)
        return 200, self.leases[name]

    def _write(self, verb: str, namespace: str, name: str, new: Any) -> tuple[int, Any]:
        about = new["metadata"]
        if problem := invalid(new, namespace, name):
            return failed(422, "Invalid", problem)
        if verb == "create":
            if namespace != NAMESPACE:
                return failed(404, "NotFound", f'namespaces "{namespace}" not found')
            name = about["name"]
            if name in self.leases:
                return self._conflict("AlreadyExists", name, "already exists")
        elif name not in self.leases:
            return missing(name)
        elif not about.get("resourceVersion"):
            problem = "metadata.resourceVersion: must be specified for an update"
            return failed(422, "Invalid", problem)
        elif about["resourceVersion"] != self.leases[name]["metadata"]["resourceVersion"]:
            words = "the object has been modified; please apply your changes to the latest version"
            return self._conflict("Conflict", name, words)
        self._versions += 1
        self.leases[name] = new | {"metadata": about | {"resourceVersion": str(self._versions)}}
        return (201 if verb == "create" else 200), self.leases[name]

    def _conflict(self, reason: str, name: str, words: str) -> tuple[int, Any]:
        self.conflicts += 1
        return failed(409, reason, f'leases.coordination.k8s.io "{name}" {words}')


def missing(name: str) -> tuple[int, Any]:
    return failed(404, "NotFound", f'leases.coordination.k8s.io "{name}" not found')


def failed(status: int, reason: str, message: str) -> tuple[int, Any]:
    return status, {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reason,
        "message": message,
        "code": status,
    }


def invalid(new: Any, namespace: str, name: str) -> str:
    """What kube-apiserver's validation of a Lease finds."""
    about, spec = new["metadata"], new["spec"]
    if (new["apiVersion"], new["kind"]) != ("coordination.k8s.io/v1", "Lease"):
        return "not a Lease"
    if about["namespace"] != namespace or name not in ("", about["name"]):
        return "the name of the object does not match the name on the URL"
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", about["name"]):
        return "metadata.name: a lowercase RFC 1123 subdomain"
    if {*spec} - {"holderIdentity", "leaseDurationSeconds", "leaseTransitions", "renewTime"}:
        return "unknown field in spec"
    if spec["leaseDurationSeconds"] <= 0 or spec["leaseTransitions"] < 0:
        return "spec: must be greater than 0"
    if not MICRO_TIME.fullmatch(spec["renewTime"]) or not spec.get("holderIdentity", "x"):
        return "spec: not a MicroTime, or an empty holder"
    return ""


@contextmanager
def kubernetes_api(folder: Path) -> Iterator[KubernetesApi]:
    """A server with one empty namespace, until the block ends."""
    api = KubernetesApi(folder)

    class Answers(Handler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            given = api.fault(self.command)
            if given is None or given.does:
                status, document = api.answer(self.command, self.path, token, body)
                raw, headers = json.dumps(document).encode(), {"Content-Type": "application/json"}
            if given is not None:
                time.sleep(given.after_s)
                status, raw, headers = given.status, given.body, given.headers
            self.send_response(status)
            for name, value in (headers | {"Content-Length": str(len(raw))}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(raw)

        do_GET = do_POST = do_PUT = _answer

    certificate = api.authority.issue(folder / "api.pem", "kubernetes")
    with serving(Answers, ServerTls(certificate, None).context) as address:
        api.port = urlsplit(address).port or 0
        yield api
