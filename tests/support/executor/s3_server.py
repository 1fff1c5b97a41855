"""A real S3 server in this process, and a client whose calls fail on demand."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from functools import cache
from itertools import count
from typing import Any

from botocore.exceptions import ClientError, EndpointConnectionError
from moto.server import ThreadedMotoServer

from clients.s3 import Bucket, S3Settings, client_of
from executor.journal.archive import Archive
from executor.journal.lease import Lease
from executor.timing import Timing
from lab.local_cluster.tcp_ports import HOST, free_ports
from tests.support.executor.simulated_runs import Killed

BUCKET = "archive"
CALL_S = 10.0
"""The longest that a request to a simulated cluster takes."""


_places = count()


@contextmanager
def s3_server() -> Iterator[str]:
    """The endpoint of a server that has one empty bucket."""
    (port,) = free_ports(1)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(HOST, port=port, verbose=False)
    server.start()
    endpoint = f"http://{HOST}:{port}"
    client(s3_settings(endpoint)).create_bucket(Bucket=BUCKET)
    yield endpoint
    server.stop()


def client(settings: S3Settings) -> Any:
    """One client per server, since making one takes longer than its calls."""
    return _client(replace(settings, prefix=""))


@cache
def _client(settings: S3Settings) -> Any:
    return client_of(settings)


def place(endpoint: str) -> S3Settings:
    """A separate prefix in the bucket, which all servers of a process share."""
    return s3_settings(endpoint, f"{next(_places)}/")


def s3_settings(endpoint: str, prefix: str = "") -> S3Settings:
    return S3Settings(
        endpoint_url=endpoint, bucket=BUCKET, prefix=prefix, access_key="me", secret_key="secret"
    )


class Fault(Enum):
    """How a call to the store fails."""

    AWAY = "nobody answers"
    ANSWER_LOST = "it is done, and nobody is told"
    DENIED = "the rights do not suffice"
    CONFLICT = "two writes meet"
    SLOW = "it takes 25 s"
    KILLED = "this process dies before it"
    KILLED_AFTER = "and after it"


class FaultyClient:
    """A client of a real server, with faults between."""

    def __init__(self, settings: S3Settings) -> None:
        self._client = client(settings)
        self.exceptions = self._client.exceptions
        self.fault: Callable[[int], Fault | None] = lambda _: None
        """The fault of the n-th call."""
        self.calls = 0
        self.call = self.key = ""
        """Of the call that `fault` decides about."""
        self.dead = False
        self.wait: Callable[[float], None] = lambda _: None

    def put_object(self, **how: Any) -> Any:
        return self._call("PutObject", how, lambda: self._client.put_object(**how))

    def get_object(self, **how: Any) -> Any:
        return self._call("GetObject", how, lambda: self._client.get_object(**how))

    def get_paginator(self, name: str) -> Any:
        return self._call("ListObjectsV2", {}, lambda: self._client.get_paginator(name))

    def _call(self, name: str, how: Any, call: Callable[[], Any]) -> Any:
        self.call, self.key = name, str(how.get("Key", ""))
        fault = self.fault(self.calls)
        self.calls += 1
        match fault:
            case Fault.AWAY:
                raise EndpointConnectionError(endpoint_url="http://nowhere")
            case Fault.DENIED:
                raise refusal(name, 403, "AccessDenied")
            case Fault.CONFLICT if "IfMatch" in how or "IfNoneMatch" in how:
                raise refusal(name, 409, "ConditionalRequestConflict")
            case Fault.ANSWER_LOST:
                call()
                raise EndpointConnectionError(endpoint_url="http://nowhere")
            case Fault.SLOW:
                self.wait(25.0)
            case Fault.KILLED:
                raise Killed
            case Fault.KILLED_AFTER:
                if not self.dead:
                    self.dead = True
                    call()
                raise Killed
        return call()


def refusal(name: str, status: int, code: str) -> ClientError:
    return ClientError(
        {"Error": {"Code": code, "Message": code}, "ResponseMetadata": {"HTTPStatusCode": status}},
        name,
    )


class Host:
    """A host with an archive: its own client, lease and clock."""

    def __init__(
        self, settings: S3Settings, timing: Timing, name: str, call_s: float = CALL_S
    ) -> None:
        self.name = name
        self.wire = FaultyClient(settings)
        self.bucket = Bucket(settings, lambda _: self.wire)
        self.lease = Lease(self.bucket, timing, call_s=call_s, holder=name)
        self.archive = Archive(self.bucket, self.lease, timing)


def keys(settings: S3Settings) -> list[str]:
    """Keys in the bucket under the prefix."""
    pages = client(settings).list_objects_v2(Bucket=BUCKET, Prefix=settings.prefix)
    result = [entry["Key"] for entry in pages.get("Contents", ())]
    return [key.removeprefix(settings.prefix) for key in result]
