"""Java's key stores and trust stores, PKCS12 and JKS, as PEM.

PKCS12 is read by cryptography. JKS is Java's own format, so Java's `keytool` converts it, in a
folder that no other user can read.
"""

import os
import secrets
import subprocess
import tempfile
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from clients.jvm.java import find_java

_STORE: Final = "PLIMSOLL_STORE_PASSWORD"
_KEY: Final = "PLIMSOLL_KEY_PASSWORD"
_RESULT: Final = "PLIMSOLL_RESULT_PASSWORD"
_TIMEOUT_S: Final = 120.0


class StoreKind(StrEnum):
    """Formats of stores, by Java's names."""

    PEM = "PEM"
    PKCS12 = "PKCS12"
    JKS = "JKS"


@dataclass(frozen=True, slots=True)
class JavaStore:
    """What a store contains, in PEM."""

    certificates: str = ""
    """All certificates; that of the private key is the first."""
    key: str | None = field(default=None, repr=False)
    """The private key, without a password; None without one."""


def kind_of(data: bytes) -> StoreKind | None:
    """The format of a store by its first bytes; None if it is neither PKCS12 nor JKS."""
    if data.startswith((b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")):
        return StoreKind.JKS
    # A DER sequence.
    return StoreKind.PKCS12 if data.startswith(b"\x30") else None


def read_store(
    path: Path, data: bytes, password: str | None, key_password: str | None
) -> JavaStore:
    """Read a store with a private key, or with trusted certificates alone.

    data: the file's content. password: None where the store has none, as trust stores may.
    key_password: of the private key, by default that of the store.

    Raises ValueError, with a clause that quotes no password, where it cannot be read.
    """
    if kind_of(data) is StoreKind.JKS:
        return _read_jks(path, password, key_password)
    return _read_pkcs12(data, password)


def _read_pkcs12(data: bytes, password: str | None) -> JavaStore:
    # 0.1 s, and most clusters have no such store.
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.serialization import pkcs12

    given = None if password is None else password.encode()
    try:
        found = pkcs12.load_pkcs12(data, given)
    except ValueError as exc:
        words = "the password does not open it" if password else "it needs a password"
        raise ValueError(f"{words}, or it is damaged") from exc
    own = () if found.cert is None else (found.cert,)
    pem = serialization.Encoding.PEM
    certificates = "".join(
        entry.certificate.public_bytes(pem).decode("ascii")
        for entry in (*own, *found.additional_certs)
    )
    key = None
    if found.key is not None:
        key = found.key.private_bytes(
            pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode("ascii")
    return JavaStore(certificates, key)


def _read_jks(path: Path, password: str | None, key_password: str | None) -> JavaStore:
    keytool = _Keytool(path, password, key_password)
    aliases = keytool.private_keys()
    if not aliases:
        return JavaStore(keytool.certificates())
    if len(aliases) > 1:
        raise ValueError(
            f"it has {len(aliases)} private keys, and one of them must be chosen; keep one"
        )
    if not password:
        raise ValueError("it needs a password")
    return keytool.converted(aliases[0])


class _Keytool:
    """Java's `keytool` on one store."""

    def __init__(self, path: Path, password: str | None, key_password: str | None) -> None:
        self._program = find_java().executable.with_name("keytool")
        if not self._program.exists():
            raise ValueError(
                f"Java's keytool is not at {self._program}; convert the store elsewhere"
            )
        self._path, self._password = path, password
        self._passwords = {
            name: text
            for name, text in (
                (_STORE, password),
                (_KEY, key_password or password),
                (_RESULT, secrets.token_hex(16)),
            )
            if text
        }

    def private_keys(self) -> list[str]:
        """Aliases of the private keys."""
        found, alias = [], ""
        for line in self._listed("-v").splitlines():
            name, _, value = line.partition(": ")
            if name == "Alias name":
                alias = value
            if name == "Entry type" and value == "PrivateKeyEntry":
                found.append(alias)
        return found

    def certificates(self) -> str:
        """All certificates, in PEM."""
        return self._listed("-rfc")

    def converted(self, alias: str) -> JavaStore:
        """The store of one private key, by way of PKCS12."""
        with tempfile.TemporaryDirectory(prefix="plimsoll-") as folder:
            result = Path(folder, "store.p12")
            self._run(
                *("-importkeystore", "-noprompt", "-srckeystore", str(self._path)),
                *("-srcalias", alias, "-srcstorepass:env", _STORE, "-srckeypass:env", _KEY),
                *("-destkeystore", str(result), "-deststoretype", "PKCS12"),
                *("-deststorepass:env", _RESULT, "-destkeypass:env", _RESULT),
            )
            return _read_pkcs12(result.read_bytes(), self._passwords[_RESULT])

    def _listed(self, form: str) -> str:
        given = ("-storepass:env", _STORE) if self._password else ()
        return self._run("-list", form, "-keystore", str(self._path), *given)

    def _run(self, *arguments: str) -> str:
        language = ("-J-Duser.language=en", "-J-XX:TieredStopAtLevel=1", "-J-XX:-UsePerfData")
        # Passwords are in the environment: everyone may read a command.
        run = subprocess.run(
            [str(self._program), *arguments, *language],
            # Java decodes the environment by the locale.
            env=os.environ | {"LC_ALL": "C.UTF-8"} | self._passwords,
            # Without a password, keytool asks for one, and takes an empty line for none.
            input="\n",
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
        )
        if run.returncode:
            raise ValueError(_reason(run.stdout + run.stderr))
        return run.stdout


def _reason(output: str) -> str:
    if "Cannot recover key" in output:
        return "ssl.key.password does not open the private key"
    if "password was incorrect" in output or "tampered" in output:
        return "the password does not open it, or it is damaged"
    lines = [line for line in output.splitlines() if "Exception: " in line]
    return f"keytool: {lines[0].rpartition('Exception: ')[2]}" if lines else "it is damaged"
