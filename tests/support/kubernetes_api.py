"""An API server of Kubernetes for leases alone, over HTTPS: versions, conflicts and rights.

Statuses, reasons and messages are those of kube-apiserver: `AlreadyExists` and `Conflict` with 409,
an update without a version with 422, a namespace or Lease that is missing with 404. As there, an
update creates a Lease that is missing, unless it names the uid of the one to be updated.
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
        self.rights: set[str] = {*VERBS.values()}
        self.everywhere = False
        """Whether the rights hold in other namespaces, too."""
        self.fault: Callable[[str], Answer | None] = lambda _: None
        """Decides about a method."""
        self.conflicts = 0
        self.seen: list[str] = []
        """Method and path of each request."""
        self._versions, self._accounts = 100, 0
        self._lock = threading.Lock()

    def account(self, name: str = "account", namespace: str = NAMESPACE) -> Path:
        """A service account's folder."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        (folder / "token").write_text(f"{self.token()}\n")
        (folder / "namespace").write_text(namespace)
        self.authority.write(folder / "ca.crt")
        return folder

    def token(self) -> str:
        """A token of the account."""
        return f"of-account-{self._accounts}"

    def revoke(self) -> None:
        """Refuse the tokens that there are."""
        self._accounts += 1

    def allow(self, *verbs: str, everywhere: bool = False) -> None:
        """Let the account do this with leases, in its namespace or in all."""
        self.rights, self.everywhere = {*verbs}, everywhere

    def place(self, name: str, spec: dict[str, Any]) -> None:
        """Create a lease as another tool does."""
        self._put(name, {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec})

    def remove(self, name: str) -> None:
        """Remove a lease."""
        del self.leases[name]

    def reset(self) -> None:
        """Remove all leases, and give the usual rights."""
        self.leases.clear()
        self.seen.clear()
        self.allow(*VERBS.values())
        self.fault = lambda _: None

    @property
    def version(self) -> str:
        """What it is."""
        return "a test server"

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
            if token != self.token():
                return failed(401, "Unauthorized", "Unauthorized")
            namespace, name = match[1], match[2] or ""
            verb = VERBS[method]
            if verb not in self.rights or not (self.everywhere or namespace == NAMESPACE):
                return failed(
                    403,
                    "Forbidden",
                    f'leases.coordination.k8s.io "{name}" is forbidden: User '
                    f'"system:serviceaccount:{NAMESPACE}:plimsoll" cannot {verb} resource "leases" '
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
        if namespace != NAMESPACE:
            return failed(404, "NotFound", f'namespaces "{namespace}" not found')
        name = about["name"]
        there = self.leases[name]["metadata"] if name in self.leases else {}
        if verb == "create":
            if there:
                return self._conflict("AlreadyExists", f"{leases_named(name)} already exists")
        elif about.get("uid") not in (None, there.get("uid")):
            words = f"UID in precondition: {about['uid']}, UID in object meta: {there.get('uid')}"
            return self._conflict("Conflict", f"Precondition failed: {words}")
        elif there and not about.get("resourceVersion"):
            problem = "metadata.resourceVersion: must be specified for an update"
            return failed(422, "Invalid", problem)
        elif there and about["resourceVersion"] != there["resourceVersion"]:
            words = "the object has been modified; please apply your changes to the latest version"
            return self._conflict("Conflict", f"{words} and try again")
        return (200 if there else 201), self._put(name, new)

    def _put(self, name: str, new: Any) -> Any:
        self._versions += 1
        old = self.leases.get(name, {"metadata": {"uid": f"uid-{self._versions}"}})
        given = {"uid": old["metadata"]["uid"], "resourceVersion": str(self._versions)}
        self.leases[name] = new | {"metadata": new["metadata"] | given}
        return self.leases[name]

    def _conflict(self, reason: str, message: str) -> tuple[int, Any]:
        self.conflicts += 1
        return failed(409, reason, message)


def leases_named(name: str) -> str:
    return f'leases.coordination.k8s.io "{name}"'


def missing(name: str) -> tuple[int, Any]:
    return failed(404, "NotFound", f"{leases_named(name)} not found")


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
