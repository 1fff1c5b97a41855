"""A real API server of Kubernetes with its etcd, in which plimsoll's manifests give the rights.

The account is the service account that the manifests make, with tokens that the server issues, and
the Role of `standby.yaml`. No controller runs, so nothing becomes of workloads.
"""

import json
import os
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml  # type: ignore[import-untyped]

from lab.local_cluster.processes import Processes
from lab.local_cluster.tcp_ports import HOST, free_ports
from tests.support.kubernetes_api import NAMESPACE, VERBS, KubernetesApi
from tests.support.paths import ROOT
from tests.support.tls_certificates import Authority

MANIFESTS: Final = ROOT / "deploy" / "kubernetes"
PROGRAMS: Final = ("kube-apiserver", "etcd")
RESTRICTED: Final = "restricted"
"""A namespace whose pods must meet Kubernetes' restricted standard."""
WAIT_S: Final = 300.0
ADMIN: Final = "of-the-administrator"
ACCOUNT: Final = "plimsoll"
ACCOUNTS: Final = f"api/v1/namespaces/{NAMESPACE}/serviceaccounts"
LEASES: Final = f"apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
RBAC: Final = "apis/rbac.authorization.k8s.io/v1"
ROLES: Final = f"{RBAC}/namespaces/{NAMESPACE}/roles"
REVIEWS: Final = "apis/authorization.k8s.io/v1/subjectaccessreviews"
ELSEWHERE: Final = "nowhere"
"""A namespace that does not exist."""
CONFLICTS: Final = re.compile(r'^apiserver_request_total\{[^}]*code="409"[^}]*\} (\S+)$', re.M)


def kubernetes_home() -> Path | None:
    """PLIMSOLL_KUBERNETES_HOME, if it has the programs."""
    home = Path(os.environ.get("PLIMSOLL_KUBERNETES_HOME", ""))
    there = all(os.access(home / program, os.X_OK) for program in PROGRAMS)
    return home if there and home.is_absolute() else None


@contextmanager
def kube_apiserver(home: Path, folder: Path) -> Iterator["KubeApiserver"]:
    """A server with a namespace and an account, until the block ends."""
    api = KubeApiserver(home, folder)
    try:
        api.start()
        api.prepare()
        yield api
    finally:
        api.close()


class KubeApiserver:
    """Both programs, and what an administrator does with them."""

    def __init__(self, home: Path, folder: Path) -> None:
        self.folder = folder
        """Where accounts are mounted."""
        self.host = HOST
        self.port, self._etcd, peers = free_ports(3)
        self.authority = Authority.make("authority of the cluster")
        trusted = self.authority.write(folder / "ca.crt")
        self._tls = ssl.create_default_context(cafile=trusted)
        self._token = ""
        """The account's newest."""
        self._command = [str(home / "kube-apiserver"), *self._options()]
        self._processes = Processes(folder / "processes")
        self._processes.spawn("etcd", [str(home / "etcd"), *self._etcd_options(peers)])

    def _options(self) -> list[str]:
        served = self.authority.issue(self.folder / "api.pem", "kubernetes")
        signs = self.authority.issue(self.folder / "accounts.pem", "accounts")
        tokens = self.folder / "tokens.csv"
        tokens.write_text(f"{ADMIN},administrator,administrator,system:masters\n")
        return [
            f"--etcd-servers=http://{HOST}:{self._etcd}",
            f"--bind-address={HOST}",
            f"--advertise-address={HOST}",
            f"--secure-port={self.port}",
            f"--cert-dir={self.folder / 'certificates'}",
            f"--tls-cert-file={served}",
            f"--tls-private-key-file={served}",
            f"--token-auth-file={tokens}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={signs}",
            f"--service-account-signing-key-file={signs}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",
            # It would refuse pods, since no controller makes default accounts.
            "--disable-admission-plugins=ServiceAccount",
        ]

    def _etcd_options(self, peers: int) -> list[str]:
        clients, own = f"http://{HOST}:{self._etcd}", f"http://{HOST}:{peers}"
        return [
            f"--data-dir={self.folder / 'processes' / 'etcd'}",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={own}",
            f"--initial-advertise-peer-urls={own}",
            f"--initial-cluster=default={own}",
            "--unsafe-no-fsync",
        ]

    # ---- the programs

    def start(self) -> None:
        """Start the API server; return once it serves."""
        self._processes.spawn("kube-apiserver", self._command)
        self._wait(self._is_ready, "kube-apiserver is ready")

    def _is_ready(self) -> bool:
        for name in PROGRAMS:
            assert self._processes.exit_code(name) is None, self._processes.log_tail(name, 30)
        try:
            return self._ask("GET", "readyz")[0] == 200
        except OSError:
            return False

    def stop(self) -> None:
        """Kill the API server; etcd keeps what was written."""
        self._processes.kill("kube-apiserver")

    def close(self) -> None:
        """Kill both."""
        self._processes.close()

    @property
    def environment(self) -> dict[str, str]:
        """What a pod has."""
        return {"KUBERNETES_SERVICE_HOST": self.host, "KUBERNETES_SERVICE_PORT": str(self.port)}

    @property
    def version(self) -> str:
        """What it is."""
        return f"kube-apiserver {self._done('GET', 'version')['gitVersion']}"

    @property
    def conflicts(self) -> int:
        """How many requests the server has answered with 409 since it started."""
        return sum(int(found) for found in CONFLICTS.findall(self._ask("GET", "metrics")[1]))

    # ---- accounts and rights

    def prepare(self) -> None:
        """Create the namespace, the account and its rights."""
        self._create("api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        label = {"pod-security.kubernetes.io/enforce": "restricted"}
        self._create("api/v1/namespaces", {"metadata": {"name": RESTRICTED, "labels": label}})
        self._create(ACCOUNTS, _manifest("plimsoll.yaml", "ServiceAccount"))
        self._create(ROLES, _manifest("standby.yaml", "Role"))
        binding = _manifest("standby.yaml", "RoleBinding")
        self._create(f"{RBAC}/namespaces/{NAMESPACE}/rolebindings", binding)
        about = {"metadata": {"name": ACCOUNT}}
        self._create(f"{RBAC}/clusterroles", about | {"rules": []})
        everywhere = {"roleRef": binding["roleRef"] | {"kind": "ClusterRole"}}
        subjects = {"subjects": binding["subjects"]}
        self._create(f"{RBAC}/clusterrolebindings", about | everywhere | subjects)

    def account(self, name: str = "account", namespace: str = NAMESPACE) -> Path:
        """A service account's folder, as it is mounted into a pod."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        (folder / "token").write_text(self.token())
        (folder / "namespace").write_text(namespace)
        self.authority.write(folder / "ca.crt")
        return folder

    def token(self) -> str:
        """A token of the account, which the server accepts."""
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        self._token = self._create(f"{ACCOUNTS}/{ACCOUNT}/token", asked)["status"]["token"]
        self._wait(self._is_accepted, "the token is accepted")
        return self._token

    def revoke(self) -> None:
        """Replace the account by a new one of the same name; return once its tokens are refused.

        The server remembers for 10 s that it has accepted a token.
        """
        self._done("DELETE", f"{ACCOUNTS}/{ACCOUNT}")
        self._create(ACCOUNTS, _manifest("plimsoll.yaml", "ServiceAccount"))
        self._wait(lambda: not self._is_accepted(), "the token is refused")

    def _is_accepted(self) -> bool:
        return self._ask("GET", "api", token=self._token)[0] == 200

    def allow(self, *verbs: str, everywhere: bool = False) -> None:
        """Let the account do this with leases, in its namespace or in all; return once it may."""
        role = _manifest("standby.yaml", "Role")
        rules = [rule | {"verbs": verbs} for rule in role["rules"]] if verbs else []
        self._done("PUT", f"{ROLES}/{ACCOUNT}", role | {"rules": rules})
        about = {"metadata": {"name": ACCOUNT}, "rules": rules if everywhere else []}
        self._done("PUT", f"{RBAC}/clusterroles/{ACCOUNT}", about)
        for verb in VERBS.values():
            self._wait_allowed(NAMESPACE, verb, verb in verbs)
            self._wait_allowed(ELSEWHERE, verb, everywhere and verb in verbs)

    def _wait_allowed(self, namespace: str, verb: str, expected: bool) -> None:
        what = {"namespace": namespace, "verb": verb, "resource": "leases"}
        attributes = what | {"group": "coordination.k8s.io"}
        user = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
        review = {"spec": {"user": user, "resourceAttributes": attributes}}
        self._wait(
            lambda: self._create(REVIEWS, review)["status"]["allowed"] is expected, f"right: {what}"
        )

    # ---- objects

    @property
    def leases(self) -> dict[str, Any]:
        """All leases of the namespace, by name."""
        return {found["metadata"]["name"]: found for found in self._done("GET", LEASES)["items"]}

    def place(self, name: str, spec: Mapping[str, Any]) -> None:
        """Create a lease as another tool does."""
        self._create(LEASES, {"metadata": {"name": name}, "spec": spec})

    def remove(self, name: str) -> None:
        """Remove a lease."""
        self._done("DELETE", f"{LEASES}/{name}")

    def reset(self) -> None:
        """Start the server if it was stopped, remove all leases, and give the usual rights."""
        if self._processes.exit_code("kube-apiserver") is not None:
            self.start()
        self._done("DELETE", LEASES)
        self.allow(*VERBS.values())

    def check(self, document: Mapping[str, Any]) -> str:
        """Why the server refuses to create an object in a namespace whose pods must be confined.

        Empty where it would create it; nothing is created.
        """
        version, folder = document["apiVersion"], f"{document['kind'].lower()}s"
        group = "api/v1" if version == "v1" else f"apis/{version}"
        path = f"{group}/namespaces/{RESTRICTED}/{folder}?dryRun=All&fieldValidation=Strict"
        status, text = self._ask("POST", path, document)
        return "" if status == 201 else str(json.loads(text)["message"])

    # ---- requests of the administrator

    def _create(self, path: str, document: Mapping[str, Any]) -> Any:
        return self._done("POST", path, document)

    def _done(self, method: str, path: str, document: Mapping[str, Any] | None = None) -> Any:
        status, text = self._ask(method, path, document)
        assert status in (200, 201), text
        return json.loads(text)

    def _ask(
        self,
        method: str,
        path: str,
        document: Mapping[str, Any] | None = None,
        *,
        token: str = ADMIN,
    ) -> tuple[int, str]:
        request = urllib.request.Request(
            f"https://{HOST}:{self.port}/{path}",
            data=None if document is None else json.dumps(document).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=60, context=self._tls) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as exc:
            with exc:
                return exc.code, exc.read().decode()

    def _wait(self, holds: Callable[[], bool], what: str) -> None:
        end_s = time.monotonic() + WAIT_S
        while not holds():
            assert time.monotonic() < end_s, f"{what}: {self._log()}"
            time.sleep(0.1)

    def _log(self) -> str:
        return self._processes.log_tail("kube-apiserver", 30)


AnyApi = KubernetesApi | KubeApiserver
"""A real one, or one of the tests' own."""


def _manifest(name: str, kind: str) -> Any:
    """The only document of a kind in a file."""
    documents = yaml.safe_load_all((MANIFESTS / name).read_text())
    (found,) = (document for document in documents if document["kind"] == kind)
    return found
