"""Who may use the HTTP API: names with passwords or tokens, and a role each, from one file.

Passwords are hashed with scrypt (RFC 7914); tokens are random, so that SHA-256 is enough.
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, Field, ValidationError

from model.bounded import MOST_TYPED_BYTES, parse_toml, read_bytes
from model.errors import ConfigError
from model.files import FileModel
from model.printable import printable
from model.private import check_secret

N: Final = 2**14
"""scrypt's cost of a new password: with the next two, 16 MiB and some 50 ms."""
R: Final = 8
P: Final = 1
MOST_COST: Final = 2**27
"""Bytes that scrypt may take for one password."""
MOST_SECRET: Final = 1024
"""Bytes of a password or token."""
LEAST_PASSWORD: Final = 8
"""Bytes of a password."""
TOKEN_BYTES: Final = 32
_SALT_BYTES: Final = 16
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_SCRYPT: Final = re.compile(
    r"scrypt:(\d{1,7}):(\d{1,3}):(\d{1,3}):([A-Za-z0-9+/]{8,64}={0,2}):([A-Za-z0-9+/]{43}=)"
)


class Role(StrEnum):
    """What a client may do; each may do what those before it may."""

    VIEWER = "viewer"
    """Read metrics and documents."""
    OPERATOR = "operator"
    """Pause, resume, stop, approve and the like."""
    ADMIN = "admin"
    """Read who did what."""

    def includes(self, other: "Role") -> bool:
        """Whether this role may do what the other may."""
        roles = list(Role)
        return roles.index(self) >= roles.index(other)


def _scrypt_text(text: str) -> str:
    found = _SCRYPT.fullmatch(text)
    if found is None:
        raise ValueError("not a hash of a password; plimsoll login prints one")
    n, r, p = (int(found[i]) for i in (1, 2, 3))
    if n < 2 or n & (n - 1) or not 0 < r * p < 2**30 or not 0 < 128 * n * r * p <= MOST_COST:
        raise ValueError("its scrypt parameters cannot be used; plimsoll login prints a hash")
    return text


class Login(FileModel):
    """One client."""

    role: Annotated[Role, Field(strict=False)]
    """What it may do."""
    password: Annotated[str, AfterValidator(_scrypt_text)] | None = None
    """`scrypt:N:R:P:SALT:HASH`, for basic authentication (RFC 7617)."""
    token: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")] | None = None
    """SHA-256 of a bearer token (RFC 6750)."""

    def prepared(self, password: str) -> str:
        """What `password` is the hash of, where a client sends this."""
        return password


class LoginsFile(FileModel):
    """The whole file."""

    logins: dict[str, Login]
    """By name."""


def password_hash(password: str) -> str:
    """What the file has of a password; another text for each call."""
    salt = secrets.token_bytes(_SALT_BYTES)
    return f"scrypt:{N}:{R}:{P}:{_text(salt)}:{_text(_scrypt(password, salt, N, R, P))}"


def token_hash(token: str) -> str:
    """What the file has of a token."""
    return f"sha256:{hashlib.sha256(token.encode()).hexdigest()}"


def new_token() -> str:
    """A random bearer token."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def check_password(password: str) -> str:
    """The password; ConfigError where it is too short or too long."""
    if not LEAST_PASSWORD <= len(password.encode("utf-8", "replace")) <= MOST_SECRET:
        raise ConfigError(f"a password has {LEAST_PASSWORD} to {MOST_SECRET} bytes")
    return password


def check_login_name(name: str) -> None:
    """Raise ConfigError unless it can be the name of a client."""
    if not _NAME.fullmatch(name):
        raise ConfigError(
            printable(f"{name!r} is not a name: at most 64 letters, digits and ._@- alone")
        )


class Logins:
    """The logins in force, and the check of what clients send."""

    def __init__(
        self,
        path: Path,
        read: Callable[[Path], Mapping[str, Login]] | None = None,
        roles: Mapping[Role, str] | None = None,
    ) -> None:
        """read, roles: for files of another form, and what they name the roles.

        Raises ConfigError where the file cannot be used. Without `read`, that includes a file that
        others can read.
        """
        self.roles: Mapping[Role, str] = roles or {role: role.value for role in Role}
        """What the file names them."""
        self._path, self._read = path, read or _read
        self._key = secrets.token_bytes(32)
        self._dummy = password_hash(secrets.token_hex())
        """So that an unknown name takes as long as a wrong password."""
        self._known: dict[str, tuple[bytes, str]] = {}
        """By name: the password that fitted last, under a key of this process, and its hash."""
        self._logins: Mapping[str, Login] = {}
        self.reload()

    def reload(self) -> None:
        """Read the file again. Raises ConfigError; then the former logins stay in force."""
        self._logins = self._read(self._path)

    def of_token(self, token: str) -> tuple[str, Role] | None:
        """Name and role of a bearer token; None for an unknown one."""
        sent, found = token_hash(token), None
        # All of them, so that the time does not tell how far it came.
        for name, login in self._logins.items():
            if login.token is not None and hmac.compare_digest(sent, login.token):
                found = name, login.role
        return found

    def remembered(self, name: str, password: str) -> Role | None:
        """The role where this password has fitted before, without scrypt."""
        login, known = self._logins.get(name), self._known.get(name)
        if login is None or known is None or known[1] != login.password:
            return None
        return login.role if hmac.compare_digest(known[0], self._mark(password)) else None

    def of_password(self, name: str, password: str) -> Role | None:
        """The role, None where name or password is wrong; takes some 50 ms of CPU."""
        login = self._logins.get(name)
        stored = None if login is None else login.password
        sent = password if login is None else login.prepared(password)
        fits = _fits(sent, stored or self._dummy)
        if login is None or stored is None or not fits:
            return None
        self._known[name] = self._mark(password), stored
        return login.role

    def _mark(self, password: str) -> bytes:
        return hmac.digest(self._key, password.encode(), "sha256")


def _fits(password: str, stored: str) -> bool:
    _, n, r, p, salt, expected = stored.split(":")
    found = _scrypt(password, base64.b64decode(salt), int(n), int(r), int(p))
    return hmac.compare_digest(_text(found), expected)


def _scrypt(password: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    most = 2 * MOST_COST
    return hashlib.scrypt(password.encode(), salt=salt, n=n, r=r, p=p, maxmem=most, dklen=32)


def credentials(header: str) -> tuple[str, str] | None:
    """Name and secret of an `Authorization` header, the name empty for a bearer token.

    None where it is neither basic nor bearer.
    """
    scheme, _, value = header.partition(" ")
    if len(value) > 2 * MOST_SECRET:
        return None
    if scheme.lower() == "bearer":
        return "", value.strip()
    if scheme.lower() != "basic":
        return None
    try:
        name, colon, secret = base64.b64decode(value.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return None
    return (name, secret) if colon and name else None


def _read(path: Path) -> dict[str, Login]:
    check_secret(path, "the logins ")
    document = parse_toml(path, _decoded(path))
    try:
        found = LoginsFile.model_validate({"logins": document}).logins
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"][1:]))
        raise ConfigError(printable(f"{path}: {place}: {first['msg']}")) from exc
    for name, login in found.items():
        try:
            check_login_name(name)
        except ConfigError as exc:
            raise ConfigError(f"{path}: {exc}") from exc
        if login.password is None and login.token is None:
            raise ConfigError(f"{path}: {name} has neither password nor token")
    if not found:
        raise ConfigError(f"{path} has no login; plimsoll login prints one")
    return found


def _decoded(path: Path) -> str:
    try:
        return read_bytes(path, MOST_TYPED_BYTES, "the logins ").decode()
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{path} is not valid UTF-8") from exc


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
