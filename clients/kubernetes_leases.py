"""Leases of Kubernetes (`coordination.k8s.io/v1`), for a service that runs in a pod.

A Lease is replaced only in the version that its writer has read (`metadata.resourceVersion`);
otherwise, and where one to be created exists, the API server answers 409. So of several writers a
single one succeeds. A version counts together with the Lease's `metadata.uid`: a version alone
would not keep the API server from creating a Lease that was removed meanwhile.
What plimsoll itself reads is an annotation; `spec` repeats it for `kubectl get leases`.

Three requests need no client of Kubernetes: lightkube would add httpx and the models of all
resources.
"""

import hashlib
import json
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPException
from math import ceil
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from clients.driver_errors import reason_of
from clients.s3 import Stored
from model.bounded import parse_json
from model.errors import ArchiveUnreachable, ConfigError, PlimsollError, RightsMissing
from model.files import canonical

API: Final = "coordination.k8s.io/v1"
ANNOTATION: Final = "plimsoll/lease"
"""Holds the lease as plimsoll reads it."""
_HOST, _PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"
_TIMEOUT_S: Final = 5.0
_MOST_BYTES: Final = 1 << 20
"""Size limit of an answer; a Lease of plimsoll has about 2 KiB."""
_NO_VERSION: Final = "none/1"
"""A version that no Lease has: etcd counts from 1, and has other objects first."""
_OK, _CREATED = 200, 201
_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _CONFLICT = 401, 403, 404, 409
_BAD: Final = (400, 422)
_READABLE: Final = 40
"""Characters of a key that the name of its Lease repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesSettings:
    """The API server, and as whom it is asked."""

    host: str
    port: int
    account: Path
    """Folder with the files `token`, `ca.crt` and `namespace`, which Kubernetes renews."""
    namespace: str | None = None
    """Of the leases; None for that of the service account."""

    @classmethod
    def of_pod(
        cls, environment: Mapping[str, str], account: Path, namespace: str | None
    ) -> "KubernetesSettings":
        """The API server that a pod's environment names. Raises ConfigError outside of a pod."""
        host, port = environment.get(_HOST, ""), environment.get(_PORT, "")
        if not host or not port.isdecimal():
            raise ConfigError(
                f"{_HOST} and {_PORT} are not set, so there is no API server to ask for a lease. "
                'Run the service in a pod of Kubernetes, or set standby_lease to "s3" or "kafka".'
            )
        return cls(host=host, port=int(port), account=account, namespace=namespace)


class KubernetesLeases:
    """Leases of one namespace. Any thread may call.

    Files of the service account are read for each request, since Kubernetes renews them. Every
    call raises ArchiveUnreachable, RightsMissing or ConfigError.
    """

    def __init__(self, settings: KubernetesSettings, timeout_s: float = _TIMEOUT_S) -> None:
        self._settings = settings
        self._timeout_s = timeout_s

    def where(self, key: str) -> str:
        """Return the address of a lease for messages."""
        try:
            return f"leases/{name_of(key)} in namespace {self._namespace()}"
        except ConfigError:
            return f"leases/{name_of(key)}"

    def get(self, key: str, most: int) -> Stored | None:
        """Return a lease of at most `most` bytes; None if there is none."""
        what = f"read {self.where(key)}"
        status, answer = self._ask("GET", name_of(key), what)
        if status == _NOT_FOUND:
            return None
        if status != _OK:
            raise self._refusal(status, answer, what)
        found = self._stored(answer, what)
        if len(found.body) > most:
            raise ConfigError(f"{self.where(key)} is larger than {most:,} bytes")
        return found

    def put_new(self, key: str, body: bytes) -> str | None:
        """Create a lease and return its version; None if another one exists."""
        what = f"create {self.where(key)}"
        status, answer = self._ask("POST", "", what, self._document(key, body, ""))
        return self._written(status, answer, what)

    def put_over(self, key: str, body: bytes, etag: str) -> str | None:
        """Replace the lease of this version, return the new one; None if it is gone."""
        what = f"write {self.where(key)}"
        status, answer = self._ask("PUT", name_of(key), what, self._document(key, body, etag))
        return None if status == _NOT_FOUND else self._written(status, answer, what)

    def keeps_conditions(self, key: str, probe: bytes) -> bool:
        """Whether writes whose condition fails are refused; else `probe` is written."""
        refused = self.put_new(key, probe) is None
        return refused and self.put_over(key, probe, _NO_VERSION) is None

    def _written(self, status: int, answer: Any, what: str) -> str | None:
        if status == _CONFLICT:
            return None
        if status not in (_OK, _CREATED):
            raise self._refusal(status, answer, what)
        return self._stored(answer, what).etag

    def _stored(self, answer: Any, what: str) -> Stored:
        try:
            about = answer["metadata"]
            # Without it, the Lease is of another tool: an empty body is not a lease of plimsoll.
            body = str((about.get("annotations") or {}).get(ANNOTATION, ""))
            return Stored(body.encode(), f"{about['uid']}/{about['resourceVersion']}")
        except (KeyError, TypeError, AttributeError) as exc:
            raise ArchiveUnreachable(
                f"Cannot {what}: {self._server} answers without a Lease"
            ) from exc

    def _document(self, key: str, body: bytes, version: str) -> Mapping[str, Any]:
        about: dict[str, Any] = {
            "name": name_of(key),
            "namespace": self._namespace(),
            "labels": {"app.kubernetes.io/name": "plimsoll"},
            "annotations": {ANNOTATION: body.decode()},
        }
        if version:
            about["uid"], _, about["resourceVersion"] = version.rpartition("/")
        return {"apiVersion": API, "kind": "Lease", "metadata": about, "spec": spec_of(body)}

    def _namespace(self) -> str:
        return self._settings.namespace or self._read("namespace")

    def _read(self, name: str) -> str:
        path = self._settings.account / name
        try:
            found = path.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as exc:
            reason = exc.strerror if isinstance(exc, OSError) else "it is not valid UTF-8"
            raise ConfigError(
                f"{path} cannot be read ({reason}). Set automountServiceAccountToken for the pod, "
                "or standby_service_account."
            ) from exc
        if not found:
            raise ConfigError(f"{path} is empty; it has to have the {name} of a service account.")
        return found

    @property
    def _server(self) -> str:
        return f"the API server of Kubernetes, {self._settings.host}:{self._settings.port},"

    def _ask(
        self, method: str, name: str, what: str, document: Mapping[str, Any] | None = None
    ) -> tuple[int, Any]:
        """Status and parsed answer of a request; None for an answer that is not JSON."""
        request = self._request(method, name, document)
        opener = urllib.request.build_opener(
            urllib.request.HTTPSHandler(context=self._context()),
            # The API server is on the pod's own network.
            urllib.request.ProxyHandler({}),
            _NoRedirect,
        )
        try:
            with opener.open(request, timeout=self._timeout_s) as answer:
                status, body = answer.status, answer.read(_MOST_BYTES + 1)
        except urllib.error.HTTPError as exc:
            with exc:
                status, body = exc.code, exc.read(_MOST_BYTES + 1)
        except (OSError, HTTPException) as exc:
            raise self._unreachable(what, exc) from exc
        if len(body) > _MOST_BYTES:
            raise ArchiveUnreachable(
                f"Cannot {what}: {self._server} answers with more than {_MOST_BYTES:,} bytes"
            )
        return self.parsed(status, body)

    @staticmethod
    def parsed(status: int, body: bytes) -> tuple[int, Any]:
        """Status and parsed body of an answer; None for one that is not JSON."""
        try:
            return status, parse_json(body)
        except ValueError:
            return status, None

    def _request(
        self, method: str, name: str, document: Mapping[str, Any] | None
    ) -> urllib.request.Request:
        host, token = self._settings.host, self._read("token")
        host = f"[{host}]" if ":" in host else host
        if not (token.isascii() and token.isprintable()):
            raise ConfigError(f"{self._settings.account / 'token'} is not one line of letters.")
        return urllib.request.Request(
            f"https://{host}:{self._settings.port}/apis/{API}/namespaces/"
            f"{quote(self._namespace(), safe='')}/leases{name and '/' + name}",
            data=None if document is None else canonical(document),
            headers={
                "Authorization": f"Bearer {token}",
                "Accept": "application/json",
                "Content-Type": "application/json",
            },
            method=method,
        )

    def _unreachable(self, what: str, exc: Exception) -> PlimsollError:
        reason = getattr(exc, "reason", exc)
        if isinstance(reason, ssl.SSLCertVerificationError):
            return ConfigError(
                f"Cannot {what}: the certificate of {self._server} is not valid by "
                f"{self._settings.account / 'ca.crt'}: {reason.verify_message}"
            )
        return ArchiveUnreachable(
            f"Cannot {what}: {self._server} cannot be reached: {reason_of(exc)}"
        )

    def _context(self) -> ssl.SSLContext:
        path = self._settings.account / "ca.crt"
        try:
            return ssl.create_default_context(cadata=self._read("ca.crt"))
        except (ssl.SSLError, ValueError) as exc:
            raise ConfigError(f"{path} has no certificate in PEM form: {exc}") from exc

    def _refusal(self, status: int, answer: Any, what: str) -> PlimsollError:
        """What a status other than success and conflict means."""
        message = answer.get("message") if isinstance(answer, dict) else None
        text = f"Cannot {what}: {self._server} answers {status}: {message or 'without a reason'}"
        if status == _UNAUTHORIZED:
            return RightsMissing(
                f"{text}. The API server does not accept the token in "
                f"{self._settings.account / 'token'}: it has expired, or its service account was "
                "removed or belongs to another cluster."
            )
        if status == _FORBIDDEN:
            return RightsMissing(
                f"{text}. The service account needs get, create and update on leases "
                f"({API.partition('/')[0]}) in the namespace."
            )
        if status == _NOT_FOUND:
            return ConfigError(f"{text}. Set standby_namespace to one that exists.")
        return ConfigError(text) if status in _BAD else ArchiveUnreachable(text)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect must not receive the token."""

    def redirect_request(self, *_: Any) -> None:
        """Follow none."""


def name_of(key: str) -> str:
    """The name of the Lease for a key: readable, and another one for each key."""
    readable = re.sub("[^a-z0-9]+", "-", key.removesuffix(".json").lower())[:_READABLE].strip("-")
    return f"plimsoll-{readable}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"


def spec_of(body: bytes) -> Mapping[str, Any]:
    """What a lease of plimsoll says in the words of Kubernetes, by the holder's clock."""
    document = json.loads(body)
    duration_ms = document["duration_ms"]
    renewed = datetime.fromtimestamp((document["expires_at_ms"] - duration_ms) / 1000, UTC)
    spec = {
        "leaseDurationSeconds": max(1, ceil(duration_ms / 1000)),
        "leaseTransitions": document["epoch"],
        "renewTime": f"{renewed:%Y-%m-%dT%H:%M:%S.%f}Z",
    }
    # Kubernetes wants a holder to have a name.
    return spec if document["released"] else spec | {"holderIdentity": document["holder"]}
