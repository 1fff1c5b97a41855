"""Every reader of bytes that others wrote: how it refuses them, and what it begins with."""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
from pydantic import ValidationError

from benchmarks.fuzz import answers
from clients.jaas import parse_jaas
from clients.properties import read_properties
from collector.brokers.response_layout import (
    MalformedResponse,
    RawResponse,
    commits,
    list_offsets,
    log_dirs,
)
from collector.reports import automq_metrics, cruise_control_metrics
from collector.reports.exporters import parse
from collector.reports.selectors import selector
from collector.samples import decode, encode
from control.service.credentials_file import read_credentials
from control.service.logins import credentials
from control.service.operator_actions import ActionRequest
from executor.journal.records import scan
from model.errors import PlimsollError
from model.files import read_document
from model.plan.plan import KIND, plan_of_document
from model.plan.signatures import read_signatures, read_signers
from model.private import begin
from tests.collector.reports.test_automq_metrics import (
    AUTOMQ_BROKER,
    AUTOMQ_PARTITION,
    CRUISE_BROKER,
    CRUISE_PARTITION,
    CRUISE_TOPIC,
)
from tests.control.cli.test_hostile_files import readers as file_readers
from tests.support.collector import admin_responses
from tests.support.collector.sample_rows import sample
from tests.support.collector.sample_rows import table as sample_table

ROOT: Final = Path(__file__).parents[2]
JOURNALS: Final = ROOT / "tests" / "golden" / "journals"
RECORD_END: Final = b"\xff\x00\xff"
"""Between the records of a topic, in one input."""
_PROMETHEUS: Final = b'# TYPE a gauge\na{x="1"} 2.5 1600000000000\na 3\n'
_KEY: Final = (
    b"-----BEGIN PUBLIC KEY-----\n"
    b"MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n"
    b"-----END PUBLIC KEY-----\n"
)


@dataclass(frozen=True, slots=True)
class ByteReader:
    """A reader of bytes."""

    read: Callable[[bytes], object]
    seeds: tuple[bytes, ...]
    """Inputs to begin with."""
    refusals: tuple[type[Exception], ...] = (PlimsollError,)
    """Errors by which it refuses others; any other error is a bug."""

    def __call__(self, data: bytes) -> bool:
        """Whether the bytes are accepted; raises whatever is not a refusal."""
        try:
            self.read(data)
        except self.refusals:
            return False
        return True


def readers(folder: Path) -> Mapping[str, ByteReader]:
    """All readers by name; folder: of files that some of them read."""
    begin()
    return dict(_readers(folder))


def _readers(folder: Path) -> Iterator[tuple[str, ByteReader]]:
    samples = Path(tempfile.mkdtemp(dir=folder))
    for reader in file_readers(samples):
        # A hash that does not fit would end every try before the plan is looked at.
        read = _without_hash if reader.name == "p.json" else reader.read
        yield reader.name, ByteReader(_of_file(read, folder, reader.name), (reader.good,))
    records = {
        "automq-topic": (automq_metrics.decode, (AUTOMQ_PARTITION, AUTOMQ_BROKER)),
        "cruise-control-topic": (
            cruise_control_metrics.decode_reports,
            (CRUISE_BROKER, CRUISE_TOPIC, CRUISE_PARTITION),
        ),
        "samples-topic": (decode, tuple(encode(sample_table([sample(1), sample(2)])))),
    }
    for name, (decoder, seeds) in records.items():
        yield name, ByteReader(_of_records(decoder), (*seeds, RECORD_END.join(seeds)))
    journals = tuple(path.read_bytes() for path in sorted(JOURNALS.rglob("*.jsonl")))
    yield "journal", ByteReader(lambda data: scan(data, "r1"), journals)
    yield (
        "properties",
        ByteReader(
            _of_file(read_properties, folder, "x.properties"), (b"a = b\\\n c\n\\u00e4:d\n",)
        ),
    )
    yield (
        "cruise-control-logins",
        ByteReader(
            _of_file(read_credentials, folder, "logins"),
            (b"eve: secret,ADMIN\n", b"bob: MD5:5ebe2294ecd0e0f08eab7690d2a6ee69,USER\n"),
        ),
    )
    yield (
        "authorization-header",
        ByteReader(lambda data: credentials(data.decode("latin-1")), (b"Basic ZXZlOnNlY3JldA==",)),
    )
    yield (
        "action-request",
        ByteReader(
            ActionRequest.model_validate_json,
            (b'{"by":"eve","plan_hash":"0a0a0a0a"}', b'{"by":"eve","rate":"50MiB"}'),
            (ValidationError,),
        ),
    )
    chosen = (selector('a{x="1"}'), selector("rate(a)"))
    yield (
        "exporter",
        ByteReader(
            lambda data: parse(data.decode("utf-8", "replace"), chosen),
            (_PROMETHEUS,),
            (ValueError,),
        ),
    )
    yield (
        "jaas",
        ByteReader(
            lambda data: parse_jaas(data.decode("utf-8", "replace")),
            (b'org.apache.kafka.X required username="u" password="p\\"";',),
            (PlimsollError, ValueError),
        ),
    )
    places = {("orders", 0): 7, ("orders", 1): 8, ("a.b", 0): 9}
    layouts: dict[str, tuple[Callable[[RawResponse], object], RawResponse]] = {
        "offsets-response": (list_offsets, admin_responses.offsets(places)),
        "log-dirs-response": (
            log_dirs,
            admin_responses.log_dirs([{"path": "/a", "sizes": places, "total_bytes": 7}]),
        ),
        "commits-response": (commits, admin_responses.commits({"g": places})),
    }
    for name, (layout, answer) in layouts.items():
        yield name, ByteReader(_of_response(layout, answer), (answer.body,), (MalformedResponse,))
    yield (
        "signatures",
        ByteReader(_of_file(read_signatures, folder, "x.sig"), (b"A" * 64, b"A" * 86 + b"==\n")),
    )
    yield (
        "signers",
        ByteReader(_of_file(read_signers, folder, "x.pem"), (_KEY, _KEY + b"\n" + _KEY)),
    )
    for name, feed, first in answers.targets(Path(tempfile.mkdtemp(dir=folder))):
        yield name, ByteReader(feed, first, (PlimsollError, *answers.REFUSALS.get(name, ())))


def _without_hash(path: Path) -> object:
    return plan_of_document(read_document(path, KIND, major=1), path)


def _of_file(read: Callable[[Path], object], folder: Path, name: str) -> Callable[[bytes], object]:
    path = folder / name

    def read_file(data: bytes) -> object:
        path.write_bytes(data)
        return read(path)

    return read_file


def _of_records(decoder: Callable[[pa.Array], object]) -> Callable[[bytes], object]:
    return lambda data: decoder(pa.array(data.split(RECORD_END), pa.binary()))


def _of_response(
    layout: Callable[[RawResponse], object], answer: RawResponse
) -> Callable[[bytes], object]:
    return lambda data: layout(
        RawResponse(body=data, version=answer.version, flexible=answer.flexible)
    )
