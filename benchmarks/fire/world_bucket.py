"""A bucket with conditional writes in memory, and hosts' clients of it, whose calls fail."""

import io
import json
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any, Final

from botocore.exceptions import ClientError, EndpointConnectionError

from benchmarks.fire.scenarios import CLUSTER_ID, FaultKind

TASK: Final = "task.json"
_CALL_S: Final = 0.02
_TIMEOUT_S: Final = 10.0
"""Two attempts of 5 s."""
_SLOW_S: Final = 9.0
_LATE_S: Final = 14.0


class MemoryBucket:
    """Objects by key, with ETags; conditional writes as S3 makes them."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[bytes, str]] = {}
        self.holder = ""
        """The holder of the lease; empty while it is released."""
        self.journals: dict[str, bytes] = {}
        """The archived journal of each run."""
        self.workers: dict[str, str] = {}
        """The holder of the lease of each task."""
        self.takeovers = self.task_takeovers = 0
        self.task_written: Callable[[bytes | None, bytes], None] = lambda *_: None
        """Receives each state of a task before it replaces the one before."""
        self._writes = 0

    def put(self, how: Mapping[str, Any]) -> dict[str, str]:
        """Write an object, or raise boto3's error where the condition does not hold."""
        key, body = str(how["Key"]), bytes(how["Body"])
        there = self.objects.get(key)
        if "IfNoneMatch" in how and there is not None:
            raise refusal("PutObject", 412, "PreconditionFailed")
        if "IfMatch" in how:
            if there is None:
                raise refusal("PutObject", 404, "NoSuchKey")
            if there[1] != how["IfMatch"]:
                raise refusal("PutObject", 412, "PreconditionFailed")
        name = key.rpartition("/")[2]
        if name == TASK:
            self.task_written(there[0] if there is not None else None, body)
        self._writes += 1
        etag = f'"{self._writes:032x}"'
        self.objects[key] = (body, etag)
        self._note(key, name, body)
        return {"ETag": etag}

    def get(self, key: str) -> dict[str, Any]:
        """Read an object, or raise boto3's error."""
        if key not in self.objects:
            raise refusal("GetObject", 404, "NoSuchKey")
        body, etag = self.objects[key]
        return {"Body": io.BytesIO(body), "ETag": etag}

    def pages(self, prefix: str, after: str, delimiter: str) -> Iterator[dict[str, Any]]:
        """One page with all keys, or all folders."""
        found = sorted(k for k in self.objects if k.startswith(prefix) and k > after)
        if not delimiter:
            contents = [{"Key": k, "Size": len(self.objects[k][0])} for k in found]
            yield {"Contents": contents}
            return
        rests = [k.removeprefix(prefix) for k in found]
        folders = dict.fromkeys(r.partition("/")[0] for r in rests if delimiter in r)
        yield {"CommonPrefixes": [{"Prefix": f"{prefix}{name}/"} for name in folders]}

    def task(self, task_id: str) -> bytes | None:
        """The newest state of a task; None without one."""
        key = f"tasks/{CLUSTER_ID}/{task_id}/{TASK}"
        return self.objects[key][0] if key in self.objects else None

    def _note(self, key: str, name: str, body: bytes) -> None:
        if name == "lease.json":
            lease = json.loads(body)
            holder = "" if lease["released"] else lease["holder"]
            if key.startswith("tasks/"):
                task_id = key.split("/")[-2]
                before, self.workers[task_id] = self.workers.get(task_id, ""), holder
                self.task_takeovers += bool(before and holder and holder != before)
                return
            self.takeovers += bool(self.holder and holder and holder != self.holder)
            self.holder = holder
        elif name.endswith(".jsonl"):
            run_id = key.split("/")[-2]
            self.journals[run_id] = self.journals.get(run_id, b"") + body


class WorldS3:
    """A client of the bucket, as far as `Bucket` uses boto3's."""

    def __init__(
        self,
        bucket: MemoryBucket,
        *,
        sleep: Callable[[float], None],
        step: Callable[[], None],
        fault: Callable[[], FaultKind | None],
        after: Callable[[float, Callable[[], None]], None],
    ) -> None:
        """`fault`: that of the next call. `after`: do something later."""
        self._bucket = bucket
        self._sleep = sleep
        self._step = step
        self._fault = fault
        self._after = after
        self.exceptions = SimpleNamespace(ClientError=ClientError)

    def put_object(self, **how: Any) -> Any:
        """Write an object."""
        return self._call(lambda: self._bucket.put(how), "IfMatch" in how or "IfNoneMatch" in how)

    def get_object(self, **how: Any) -> Any:
        """Read an object."""
        return self._call(lambda: self._bucket.get(str(how["Key"])))

    def get_paginator(self, _name: str) -> "WorldS3":
        """The only one there is: that of lists."""
        return self

    def paginate(self, **how: Any) -> Any:
        """List objects or folders."""
        prefix, after = how["Prefix"], how.get("StartAfter", "")
        delimiter = how.get("Delimiter", "")
        return self._call(lambda: list(self._bucket.pages(prefix, after, delimiter)))

    def _call(self, call: Callable[[], Any], is_conditional: bool = False) -> Any:
        self._step()
        fault = self._fault()
        match fault:
            case FaultKind.BUCKET_AWAY:
                raise self._silence()
            case FaultKind.BUCKET_CONFLICT if is_conditional:
                raise refusal("PutObject", 409, "ConditionalRequestConflict")
            case FaultKind.BUCKET_ANSWER_LOST:
                self._try(call)
                raise self._silence()
            case FaultKind.BUCKET_LATE if is_conditional:
                self._after(_LATE_S, lambda: self._try(call))
                raise self._silence()
            case FaultKind.BUCKET_SLOW:
                self._sleep(_SLOW_S)
        self._sleep(_CALL_S)
        result = call()
        self._step()
        return result

    def _silence(self) -> EndpointConnectionError:
        self._sleep(_TIMEOUT_S)
        return EndpointConnectionError(endpoint_url="http://bucket")

    @staticmethod
    def _try(call: Callable[[], Any]) -> None:
        try:
            call()
        except ClientError:
            return


def refusal(name: str, status: int, code: str) -> ClientError:
    """boto3's error for an answer of S3."""
    return ClientError(
        {"Error": {"Code": code, "Message": code}, "ResponseMetadata": {"HTTPStatusCode": status}},
        name,
    )
