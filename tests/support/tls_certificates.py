"""Certificates for tests, as PEM files."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Authority:
    """Signs certificates and has its own."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def make(cls, name: str) -> "Authority":
        key = ec.generate_private_key(ec.SECP256R1())
        built = _builder(name, name, key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        return cls(key, built.sign(key, hashes.SHA256()))

    def write(self, path: Path) -> Path:
        """Its certificate, to be trusted."""
        path.write_bytes(_pem(self.certificate))
        return path

    def issue(
        self,
        path: Path,
        name: str,
        password: str | None = None,
        *,
        hosts: Sequence[str] = (),
        ends_in: timedelta = DAY,
    ) -> Path:
        """A file with a key and its certificate, for 127.0.0.1 and these hosts."""
        key = ec.generate_private_key(ec.SECP256R1())
        (issuer,) = self.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        here = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        alternatives = [here, *map(x509.DNSName, hosts)]
        signed = (
            _builder(name, str(issuer.value), key, ends_in)
            .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        lock = BestAvailableEncryption(password.encode()) if password else None
        key_pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock or NoEncryption())
        path.write_bytes(key_pem + _pem(signed))
        return path


def _builder(
    name: str, issuer: str, key: ec.EllipticCurvePrivateKey, ends_in: timedelta = DAY
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_named(name))
        .issuer_name(_named(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 2 * DAY)
        .not_valid_after(now + ends_in)
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.PEM)
