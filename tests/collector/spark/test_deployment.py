"""Where Spark runs, which code it gets, and messages about it."""

import pickle
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy
import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.errors import PySparkRuntimeError

from clients.jvm.java import find_java
from collector.collector_settings import CollectorSettings
from collector.reports.metric_topics import DECODERS
from collector.reports.report_columns import REPORTS
from collector.samples import decode, encode
from collector.spark.arrow_transfer import from_bytes, packer, to_bytes, unpack
from collector.spark.deployment import SparkSite, is_local, master_of, protected, settings_of
from collector.spark.lasting_faults import lasting_fault
from collector.spark.py_files import pack
from collector.spark.session import Spark
from collector.spark.stream import _windower
from collector.spark.vectors import VECTORS
from collector.state_replay import ReplaySettings, replay
from lab.local_cluster.tcp_ports import free_ports
from model.errors import ClusterUnreachable, ConfigError
from tests.collector.reports.test_automq_metrics import AUTOMQ_PARTITION, CRUISE_BROKER
from tests.support.collector.sample_rows import WINDOW, rows, written

ALONE = """
import pickle, sys
import numpy, pyarrow, pyarrow.compute, pyspark.worker
sys.path[1:1] = [sys.argv[1]]

class Foreign:
    def find_spec(self, name, path=None, target=None):
        known = {*sys.stdlib_module_names, "numpy", "pyarrow", "collector", "model"}
        if name.partition(".")[0] not in known:
            raise ImportError(f"no worker needs {name}")

sys.meta_path.insert(0, Foreign())
for line in sys.stdin.buffer:
    function, batch = pickle.loads(bytes.fromhex(line.decode()))
    (found,) = function(iter([batch]))
    sys.stdout.buffer.write(pickle.dumps(found).hex().encode() + b"\\n")
assert sys.modules["collector"].__file__.startswith(sys.argv[1])
"""
"""A Python with only numpy, pyarrow, Spark's own dependencies and the zip."""


def records_of(samples: pa.Table) -> pa.RecordBatch:
    return pa.record_batch([pa.array(encode(samples), pa.binary())], names=["value"])


def test_code_of_workers_needs_only_numpy_pyarrow_and_the_zip(tmp_path: Path) -> None:
    samples = rows(0, 6)
    metrics = pa.record_batch([pa.array([AUTOMQ_PARTITION, CRUISE_BROKER])], ["value"])
    tasks = [
        (packer("samples", decode), records_of(samples)),
        (_windower(WINDOW), pa.record_batch([[to_bytes(samples)]], ["content"])),
        *((packer(source, DECODERS[source]), metrics) for source in DECODERS),
    ]
    lines = [cloudpickle.dumps(task).hex() + "\n" for task in tasks]  # type: ignore[no-untyped-call]
    run = subprocess.run(
        [
            *(sys._base_executable, "-P", "-c", ALONE),  # type: ignore[attr-defined]
            str(pack(tmp_path / "plimsoll.zip")),
        ],
        input="".join(lines).encode(),
        env={"PYTHONPATH": str(Path(numpy.__file__).parent.parent)},
        capture_output=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr.decode()
    decoded, vectors, *reports = (
        pickle.loads(bytes.fromhex(line.decode()))  # noqa: S301 - our own
        for line in run.stdout.splitlines()
    )
    assert unpack(pa.table(decoded))["samples"].tables[0].equals(samples)
    assert from_bytes(vectors["content"][0].as_py()).schema == VECTORS
    assert from_bytes(vectors["content"][0].as_py()).num_rows == 4
    for source, packed in zip(DECODERS, reports, strict=True):
        assert unpack(pa.table(packed))[source].tables[0].schema == REPORTS


@pytest.mark.parametrize(
    "master",
    [
        *("local", "local[*]", "local[2]", "local[2, 4]", "spark://a:7077"),
        *("spark://a:7077,b:7077", "yarn", "k8s://https://api:6443", "k8s://api:6443"),
    ],
)
def test_masters_of_spark_are_accepted(master: str) -> None:
    assert master_of(master) == master
    assert is_local(master) == master.startswith("local")


@pytest.mark.parametrize(
    "text", ["", "nonsense", "local[x]", "spark://a", "sc://a:15002", "mesos://a:5050"]
)
def test_other_masters_are_rejected_with_the_valid_ones(text: str) -> None:
    with pytest.raises(ValueError, match=r"use local\[\*\], spark://HOST:PORT, yarn"):
        master_of(text)


@pytest.mark.parametrize(
    ("site", "master", "topic"),
    [
        (SparkSite(), "local[2]", None),
        (SparkSite(), "yarn", "__plimsoll_samples"),
        (SparkSite(shared_state=True), "spark://a:7077", None),
    ],
)
def test_samples_reach_the_workers_by_this_machine_a_topic_or_a_shared_folder(
    site: SparkSite, master: str, topic: str | None
) -> None:
    site.require_samples(master, Path("/state"), topic)


def test_a_cluster_that_cannot_see_the_samples_is_rejected_with_a_remedy() -> None:
    message = r"k8s://a:1 .* samples in /state .*samples_topic.*spark_shared_state = true"
    with pytest.raises(ConfigError, match=message):
        SparkSite().require_samples("k8s://a:1", Path("/state"), None)


REMOTE = "spark://spark-1:7077"
ENCRYPTED = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text("of the cluster\n")
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("master", [REMOTE, "spark://127.0.0.1:7077"])
def test_a_secret_authenticates_and_encrypts(master: str, secret_file: Path) -> None:
    found = protected(master, {"spark.cores.max": "1"}, secret_file)
    secret = {"spark.authenticate.secret": "of the cluster"}
    assert found == {"spark.cores.max": "1", **ENCRYPTED, **secret}
    assert protected(master, {**secret, "spark.authenticate": "true"}, None) == ENCRYPTED | secret


@pytest.mark.parametrize("text", ["True", "TRUE", " true "])
def test_truth_is_read_as_spark_reads_it(text: str, secret_file: Path) -> None:
    given = {"spark.authenticate": text, "spark.authenticate.secret": "x"}
    assert protected(REMOTE, given, None)["spark.network.crypto.enabled"] == "true"
    assert "spark.network.crypto.enabled" in protected(
        REMOTE, {"spark.authenticate": text}, secret_file
    )
    with pytest.raises(ConfigError, match="spark_secret_file"):
        protected(REMOTE, {"spark.authenticate": text}, None)


@pytest.mark.parametrize("text", ["", "yes", "1"])
def test_a_text_that_is_neither_true_nor_false_is_refused(text: str) -> None:
    given = {"spark.authenticate": text, "spark.authenticate.secret": "x"}
    with pytest.raises(ConfigError, match=r'spark.authenticate in \[spark\] .*"true" or "false"'):
        protected(REMOTE, given, None)


def test_rpc_over_tls_may_take_the_place_of_sparks_encryption(secret_file: Path) -> None:
    given = {"spark.network.crypto.enabled": "false", "spark.ssl.rpc.enabled": "true"}
    found = protected(REMOTE, given, secret_file)
    assert found["spark.authenticate"] == "true"
    assert found["spark.network.crypto.enabled"] == "false"


@pytest.mark.parametrize(
    "master", [REMOTE, "spark://127.0.0.1:7077,192.0.2.1:7077", "spark://127.0.0.1.evil.invalid:1"]
)
def test_an_open_master_beyond_loopback_is_refused_unless_that_is_intended(master: str) -> None:
    with pytest.raises(
        ConfigError, match=r"neither authenticated nor encrypted.*spark_secret_file"
    ):
        protected(master, {}, None)
    intended = {"spark.authenticate": "false"}
    assert protected(master, intended, None) == intended


@pytest.mark.parametrize("master", ["local[*]", "yarn", "k8s://a:1", "spark://127.0.0.1:7077"])
def test_other_masters_keep_their_properties(master: str) -> None:
    assert protected(master, {"spark.cores.max": "1"}, None) == {"spark.cores.max": "1"}


@pytest.mark.parametrize(
    ("given", "text", "mode", "message"),
    [
        ({}, "secret", 0o644, "others can read or change the Spark secret"),
        ({}, " \n", 0o600, "has to hold the Spark secret, on one line"),
        ({}, "a\nb\n", 0o600, "on one line"),
        ({}, None, 0o600, "cannot read the Spark secret .*No such file"),
        ({"spark.authenticate": "false"}, "secret", 0o600, "contradict each other"),
        ({"spark.authenticate.secret": "x"}, "secret", 0o600, "contradict each other"),
    ],
)
def test_a_secret_that_cannot_be_used_is_named_and_not_quoted(
    given: dict[str, str], text: str | None, mode: int, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    if text is not None:
        path.write_text(text)
        path.chmod(mode)
    with pytest.raises(ConfigError, match=message) as raised:
        protected(REMOTE, given, path)
    assert "a\nb" not in str(raised.value)


def test_authentication_without_a_secret_is_refused() -> None:
    with pytest.raises(ConfigError, match="spark_secret_file"):
        protected(REMOTE, {"spark.authenticate": "true"}, None)


def test_sparks_own_listeners_are_on_loopback_and_authenticated_on_this_machine() -> None:
    assert settings_of("local[2]") == {"spark.driver.host": "127.0.0.1", **ENCRYPTED}


def test_a_replay_on_a_cluster_that_cannot_see_its_samples_is_rejected(tmp_path: Path) -> None:
    recording = written(tmp_path / "recorded")
    site = SparkSite(master="spark://127.0.0.1:1")
    with pytest.raises(ConfigError, match="spark_shared_state = true"):
        replay(recording, ReplaySettings(state_dir=tmp_path / "state", spark=site))
    assert list((tmp_path / "state").iterdir()) == []


def test_a_standalone_master_that_does_not_answer_is_named_before_a_jvm_starts(
    tmp_path: Path,
) -> None:
    master = f"spark://127.0.0.1:{free_ports(1)[0]}"
    spark = Spark(find_java(), master=master, log_file=tmp_path / "spark.log")
    with pytest.raises(ClusterUnreachable, match=rf"{master} does not answer \(Conn"):
        spark.start()
    assert spark.pid is None
    spark.close()


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_workers_find_this_machine_by_its_address_on_the_way_to_their_master(
    listening: int,
) -> None:
    away = free_ports(1)[0]
    master = f"spark://127.0.0.1:{away},127.0.0.1:{listening}"
    assert settings_of(master)["spark.driver.host"] == "127.0.0.1"


def test_a_python_of_another_version_is_named_with_the_required_one() -> None:
    error = PySparkRuntimeError(
        errorClass="PYTHON_VERSION_MISMATCH",
        messageParameters={"worker_version": "3.8", "driver_version": "3.11"},
    )
    fault = lasting_fault(str(error))
    needed = "{}.{}".format(*sys.version_info)
    assert isinstance(fault, ConfigError)
    assert "A Spark worker has Python 3.8. Each needs Python " + needed in str(fault)


def test_spark_uses_all_cores_of_this_machine_by_default(tmp_path: Path) -> None:
    watched = CollectorSettings(state_dir=tmp_path, cache_dir=tmp_path)
    replayed = ReplaySettings(state_dir=tmp_path)
    assert watched.spark == replayed.spark == SparkSite(master="local[*]")
