"""Java's stores, as `keytool` writes them: read, connected with, and errors about them."""

import os
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    load_pem_private_key,
    pkcs12,
)

from clients.client_properties import read_client_properties
from clients.connection import ClientProperties, Connection, Tls
from clients.driver_configs import confluent_settings, spark_options
from clients.jvm.java import find_java
from clients.reachability import check_reachable
from model.errors import AccessRefused, ClusterUnreachable, ConfigError
from tests.support.tls_certificates import Authority

PASSWORD = "store pass"
KEY_PASSWORD = "key-pass"
FAST = ("-J-XX:TieredStopAtLevel=1", "-J-XX:-UsePerfData")


@dataclass(frozen=True)
class Stores:
    folder: Path
    authority: Authority

    def read(self, *lines: str) -> ClientProperties:
        """The result of a file with these lines; {x} is a file x in the folder."""
        file = self.folder / "client.properties"
        text = "\n".join(["security.protocol=SSL", *lines])
        file.write_text(text.replace("{", str(self.folder) + "/").replace("}", ""), "utf-8")
        return read_client_properties(file)

    def tls(self, *lines: str) -> Tls:
        found = self.read(*lines).tls
        assert found is not None
        return found


def keytool(*arguments: str) -> None:
    program = find_java().executable.with_name("keytool")
    environment = os.environ | {"LC_ALL": "C.UTF-8", "STORE": PASSWORD, "KEY": KEY_PASSWORD}
    run = subprocess.run(
        [str(program), *arguments, "-noprompt", *FAST],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )
    assert run.returncode == 0, run.stdout


def packed(pem: Path, path: Path, password: str) -> None:
    """A PKCS12 store with the key and the certificate of a PEM file."""
    data = pem.read_bytes()
    key = load_pem_private_key(data, None)
    certificate = x509.load_pem_x509_certificate(data)
    encryption = BestAvailableEncryption(password.encode())
    path.write_bytes(
        pkcs12.serialize_key_and_certificates(b"own", key, certificate, None, encryption)  # type: ignore[arg-type]  # it is an elliptic curve's
    )
    path.chmod(0o600)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    """Files by format: `own.*` with a private key, `trusted.*` with the authority."""
    folder = tmp_path_factory.mktemp("stores")
    authority = Authority.make("authority")
    ca = authority.write(folder / "ca.pem")
    own = authority.issue(folder / "own.pem", "alice")
    own.chmod(0o600)
    packed(own, folder / "own.p12", PASSWORD)
    keytool(
        *("-importkeystore", "-srckeystore", str(folder / "own.p12"), "-srcstoretype", "PKCS12"),
        *("-srcstorepass:env", "STORE", "-destkeystore", str(folder / "own.jks")),
        *("-deststoretype", "JKS", "-deststorepass:env", "STORE", "-srcalias", "own"),
        *("-destkeypass:env", "KEY"),
    )
    for kind in ("JKS", "PKCS12"):
        name = "trusted.jks" if kind == "JKS" else "trusted.p12"
        keytool(
            *("-importcert", "-alias", "ca", "-file", str(ca), "-storetype", kind),
            *("-keystore", str(folder / name), "-storepass:env", "STORE"),
        )
    (folder / "own.jks").chmod(0o600)
    (folder / "damaged.p12").write_bytes((folder / "own.p12").read_bytes()[:200])
    (folder / "noise").write_bytes(bytes(range(128, 255)))
    return Stores(folder, authority)


P12 = (
    "ssl.truststore.type=PKCS12",
    "ssl.truststore.location={trusted.p12}",
    f"ssl.truststore.password={PASSWORD}",
    "ssl.keystore.type=PKCS12",
    "ssl.keystore.location={own.p12}",
    f"ssl.keystore.password={PASSWORD}",
)
JKS = (
    "ssl.truststore.type=JKS",
    "ssl.truststore.location={trusted.jks}",
    f"ssl.truststore.password={PASSWORD}",
    "ssl.keystore.type=JKS",
    "ssl.keystore.location={own.jks}",
    f"ssl.keystore.password={PASSWORD}",
    f"ssl.key.password={KEY_PASSWORD}",
)


@pytest.fixture(scope="module")
def read(stores: Stores) -> dict[str, Tls]:
    """What each format gives; Java is started once for each."""
    return {"PKCS12": stores.tls(*P12), "JKS": stores.tls(*JKS)}


@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
def test_stores_contain_what_pem_files_do(stores: Stores, read: dict[str, Tls], kind: str) -> None:
    tls = read[kind]
    assert tls.authorities is not None
    assert tls.certificates is not None
    assert tls.key is not None
    pem = (stores.folder / "own.pem").read_bytes()
    assert x509.load_pem_x509_certificate(tls.certificates.encode()) == (
        x509.load_pem_x509_certificate(pem)
    )
    assert x509.load_pem_x509_certificate(tls.authorities.encode()) == stores.authority.certificate
    assert tls.key_password is None
    # No password in what is printed.
    assert PASSWORD not in repr(tls)


@pytest.fixture
def server(stores: Stores) -> Iterator[int]:
    """A port that requires a certificate of the authority, and answers nothing."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(stores.authority.issue(stores.folder / "server.pem", "server"))
    context.load_verify_locations(stores.folder / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    plain, _ = listening.accept()
                except OSError:
                    return
                try:
                    with context.wrap_socket(plain, server_side=True) as sealed:
                        sealed.recv(100)
                except OSError:
                    continue

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
def test_a_server_accepts_the_certificate_of_a_store(
    server: int, read: dict[str, Tls], kind: str
) -> None:
    """Without a certificate it refuses, so that its answer proves something."""
    reach(server, ClientProperties(tls=read[kind]))
    with pytest.raises((AccessRefused, ClusterUnreachable)):
        reach(server, ClientProperties(tls=Tls(authorities=read[kind].authorities)))


def reach(port: int, client: ClientProperties) -> None:
    check_reachable(Connection(f"127.0.0.1:{port}", 30.0, client))


def test_drivers_and_spark_get_the_content_of_stores_as_pem(read: dict[str, Tls]) -> None:
    from confluent_kafka.admin import AdminClient

    connection = Connection("127.0.0.1:1", 1.0, ClientProperties(tls=read["JKS"]))
    settings = confluent_settings(connection)
    assert settings["ssl.key.pem"] == read["JKS"].key
    # librdkafka reads certificate and key when it is created.
    AdminClient(settings | {"log_level": 0})
    options = spark_options(connection)
    assert options["kafka.ssl.keystore.type"] == "PEM"
    assert "-----BEGIN CERTIFICATE" in options["kafka.ssl.truststore.certificates"]


@pytest.mark.parametrize(
    "lines",
    [
        ("ssl.truststore.location={trusted.jks}",),
        ("ssl.truststore.location={trusted.p12}", f"ssl.truststore.password={PASSWORD}"),
        # Java reads either format, whichever of the two is named.
        (
            "ssl.truststore.type=JKS",
            "ssl.truststore.location={trusted.p12}",
            f"ssl.truststore.password={PASSWORD}",
        ),
    ],
    ids=["JKS without password", "PKCS12", "PKCS12 as JKS"],
)
def test_the_format_is_found_in_the_file(stores: Stores, lines: tuple[str, ...]) -> None:
    tls = stores.tls(*lines)
    assert tls.authorities is not None
    assert tls.authorities.count("BEGIN CERTIFICATE") == 1
    assert tls.certificates is None


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            (*P12[3:5], "ssl.keystore.password=wrong"),
            r"line 3: ssl.keystore.location: .*own.p12 cannot be read: the password does not "
            r"open it, or it is damaged; check ssl.keystore.password",
        ),
        (P12[3:5], "it needs a password, or it is damaged"),
        (
            ("ssl.truststore.location={trusted.jks}", "ssl.truststore.password=wrong1"),
            "trusted.jks cannot be read: the password does not open it",
        ),
        (
            (*JKS[3:6], "ssl.key.password=wrong1"),
            "own.jks cannot be read: ssl.key.password does not open the private key",
        ),
        (JKS[3:5], "own.jks cannot be read: it needs a password"),
        (("ssl.keystore.type=PKCS12", "ssl.keystore.location={none}"), "cannot read .*none"),
        (("ssl.keystore.type=PKCS12", "ssl.keystore.location={noise}"), "neither PKCS12 nor JKS"),
        (
            (*P12[3:4], "ssl.keystore.location={damaged.p12}", P12[5]),
            "damaged.p12 cannot be read: .*or it is damaged",
        ),
        (
            ("ssl.keystore.location={trusted.p12}", f"ssl.keystore.password={PASSWORD}"),
            "trusted.p12 contains no private key",
        ),
        (("ssl.keystore.type=BCFKS", "ssl.keystore.location={own.p12}"), "BCFKS is not supported"),
        ((*P12[:3], "ssl.ca.location={ca.pem}"), "ssl.truststore.location has the same"),
        ((*P12[3:], "ssl.key.location={own.pem}"), "ssl.keystore.location has the same"),
    ],
)
def test_an_unusable_store_is_reported_with_its_key(
    stores: Stores, lines: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        stores.read(*lines)
    assert PASSWORD not in str(caught.value)
    assert KEY_PASSWORD not in str(caught.value)


def test_an_ended_certificate_and_a_readable_key_are_warned_of(
    stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    ended = stores.authority.issue(stores.folder / "ended.pem", "alice", ends_in=-timedelta(days=1))
    ended.chmod(0o644)
    stores.read("ssl.keystore.location={ended.pem}")
    assert "others can read the private key in" in caplog.text
    assert "the client's certificate ended on" in caplog.text
    caplog.clear()
    stores.read(*P12[3:])
    stores.read("ssl.keystore.location={own.pem}")
    assert caplog.text == ""
