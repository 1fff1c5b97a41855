"""Signatures of plans by Ed25519 keys: who may approve a plan, and who did.

OpenSSL makes the same signatures: `openssl pkeyutl -sign -rawin` over `signed_text`.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from model.bounded import read_bytes, refuse_named_pipe
from model.errors import ConfigError, GuardrailRefused
from model.files import replace_file
from model.private import check_secret

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

SUFFIX: Final = ".sig"
"""Appended to the name of a plan file; its signatures are in that file."""
DOMAIN: Final = "plimsoll plan 1"
"""First line of what is signed, so that no signature of anything else fits."""
MOST_BYTES: Final = 65_536
"""Of a file of keys or signatures."""
_LENGTH: Final = 64
_KEY: Final = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----.*?-----END \1-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature of a plan that has been verified, or just been made."""

    signer: str
    """Fingerprint of the key: SHA-256 of its public half in DER, in hex."""
    text: str
    """The signature in base64."""


def signed_text(plan_hash: str) -> bytes:
    """What is signed: two lines, the second one is the plan's hash, which covers all else."""
    return f"{DOMAIN}\n{plan_hash}\n".encode()


def signature_file(plan_file: Path) -> Path:
    """Where the signatures of a plan file are."""
    return plan_file.with_name(plan_file.name + SUFFIX)


def sign(plan_hash: str, key_file: Path) -> Signature:
    """Sign a plan's hash with the private key of a PEM file, which is not encrypted.

    Raises ConfigError: others can read the file, or it holds no such key.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    _refuse_public_key(key_file)
    check_secret(key_file, "the key ")
    try:
        key = load_pem_private_key(read_bytes(key_file, MOST_BYTES), password=None)
    except TypeError as exc:
        raise ConfigError(f"the key {key_file} is encrypted; sign with openssl pkeyutl") from exc
    except Exception as exc:  # the library raises errors of several kinds
        raise ConfigError(f"{key_file} holds no private key in PEM") from exc
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigError(_wrong_type(key_file))
    made = key.sign(signed_text(plan_hash))
    return Signature(_fingerprint(key.public_key()), base64.b64encode(made).decode())


def add_signatures(path: Path, signatures: Iterable[bytes]) -> None:
    """Add signatures to those in a file. Raises ConfigError where it cannot be read or written."""
    present = read_signatures(path) if path.exists() else []
    lines = [base64.b64encode(each).decode() for each in dict.fromkeys([*present, *signatures])]
    try:
        replace_file(path, "".join(f"{line}\n" for line in lines).encode())
    except OSError as exc:
        raise ConfigError(f"cannot write {path}: {exc.strerror}") from exc


def read_signatures(path: Path) -> list[bytes]:
    """The signatures in a file: one of 64 bytes as it is, or any number in base64, one a line.

    Raises ConfigError where the file cannot be read, or something in it is no such signature.
    """
    refuse_named_pipe(path)
    content = read_bytes(path, MOST_BYTES)
    if len(content) == _LENGTH:
        return [content]
    found = []
    for number, line in enumerate(content.split(), 1):
        try:
            found.append(base64.b64decode(line, validate=True))
        except binascii.Error:
            found.append(b"")
        if len(found[-1]) != _LENGTH:
            raise ConfigError(
                f"{path}: signature {number} is truncated or not in base64; remove that "
                "file, and sign the plan again"
            )
    return found


class Signers:
    """The public keys whose owners may approve plans."""

    def __init__(self, keys: Mapping[str, "Ed25519PublicKey"]) -> None:
        """keys: by fingerprint."""
        self._keys = keys

    def find(self, plan_hash: str, signatures: Iterable[bytes]) -> Signature | None:
        """The first signature of this plan by one of the keys; None without any."""
        from cryptography.exceptions import InvalidSignature

        text = signed_text(plan_hash)
        for signature in signatures:
            for signer, key in self._keys.items():
                try:
                    key.verify(signature, text)
                except InvalidSignature:
                    continue
                return Signature(signer, base64.b64encode(signature).decode())
        return None


def read_signers(path: Path) -> Signers:
    """Read public keys: one PEM block after the other.

    Raises ConfigError: others can change the file, or a block is not a public Ed25519 key.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    check_secret(path, "the public keys ", published=True)
    keys = {}
    for block in _KEY.finditer(read_bytes(path, MOST_BYTES)):
        if b"PRIVATE" in block[1]:
            raise ConfigError(f"{path} holds a private key; give the public ones only")
        try:
            key = load_pem_public_key(block[0])
        except Exception as exc:  # the library raises errors of several kinds
            raise ConfigError(f"{path} holds a damaged public key") from exc
        if not isinstance(key, Ed25519PublicKey):
            raise ConfigError(_wrong_type(path))
        keys[_fingerprint(key)] = key
    if not keys:
        raise ConfigError(f"{path} holds no public key in PEM")
    return Signers(keys)


@dataclass(frozen=True, slots=True)
class RequiredSignature:
    """Plans need a signature by one of these keys; read whenever one is verified."""

    keys_file: Path
    folder: Path
    """Where plans wait for approval, and their signatures with them."""
    plan_file: Path | None = None
    """The plan file that was given to the command; None where plans wait in `folder`."""

    def of(self, plan_hash: str) -> Signature:
        """The valid signature of a plan.

        Raises GuardrailRefused without any, and ConfigError where a file cannot be used.
        """
        plan_file = self.plan_file or self.folder / f"{plan_hash}.plan.json"
        path = signature_file(plan_file)
        signers = read_signers(self.keys_file)
        if not path.exists():
            raise GuardrailRefused(
                f"plan {plan_hash[:12]} is not signed: there is no {path}. Sign the plan file with "
                "plimsoll sign; plans that are not in a file cannot be signed, so make one with "
                "--out, and apply it"
            )
        return self._valid(signers.find(plan_hash, read_signatures(path)), plan_hash, str(path))

    def again(self, plan_hash: str, signature: str) -> Signature:
        """Verify the signature that a journal has; raises GuardrailRefused."""
        try:
            recorded = [base64.b64decode(signature, validate=True)]
        except ValueError:
            recorded = []
        found = read_signers(self.keys_file).find(plan_hash, recorded)
        return self._valid(found, plan_hash, "its journal")

    def _valid(self, found: Signature | None, plan_hash: str, where: str) -> Signature:
        if found is None:
            raise GuardrailRefused(
                f"{where} has no signature of plan {plan_hash[:12]} by a key of {self.keys_file}"
            )
        return found


def _refuse_public_key(path: Path) -> None:
    """Raise ConfigError for a public key, which others may read: its mode is not what is wrong."""
    if not path.is_file():
        return
    kinds = [block[1] for block in _KEY.finditer(read_bytes(path, MOST_BYTES))]
    if kinds and not any(b"PRIVATE" in kind for kind in kinds):
        raise ConfigError(f"{path} holds no private key; sign with the private one")


def _fingerprint(key: "Ed25519PublicKey") -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).hexdigest()


def _wrong_type(path: Path) -> str:
    return f"{path} holds a key of another kind than Ed25519; make one with openssl genpkey"
