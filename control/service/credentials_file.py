"""Cruise Control's file of logins, `webserver.auth.credentials.file`.

Each line is `NAME: PASSWORD, ROLE` (Jetty's `HashLoginService`), the password as plain text, or
after the prefixes `OBF:` and `MD5:` of Jetty's `Password` tool.
"""

import hashlib
import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from clients.properties import Properties, read_properties
from control.service.logins import MOST_SECRET, Login, Logins, Role, check_login_name, password_hash
from model.errors import ConfigError
from model.log_events import LogEvent, named
from model.printable import printable
from model.private import check_secret

ROLES: Final = {"VIEWER": Role.VIEWER, "USER": Role.OPERATOR, "ADMIN": Role.ADMIN}
"""Cruise Control's roles, and those that may do the same here."""
MOST_LOGINS: Final = 100
"""Logins in one file: each costs a hash when the file is read."""
_MD5: Final = re.compile(r"MD5:[0-9a-fA-F]{32}")
_OBFUSCATED: Final = re.compile(r"OBF:((?:[0-9a-z]{4}|U[0-9a-z]{4})+)")
_log = logging.getLogger("plimsoll.private")


class CredentialsLogin(Login):
    """A login of such a file."""

    is_md5: bool = False
    """Whether `password` is the hash of `MD5:` and the password's MD5."""

    def prepared(self, password: str) -> str:
        """What `password` is the hash of, where a client sends this."""
        if not self.is_md5:
            return password
        # Jetty takes the bytes of ISO 8859-1.
        data = password.encode("latin-1", "replace")
        return f"MD5:{hashlib.md5(data, usedforsecurity=False).hexdigest()}"


def logins_of(path: Path) -> Logins:
    """The logins of such a file, which says what it names the roles. Raises ConfigError."""
    return Logins(path, read_credentials, {role: name for name, role in ROLES.items()})


def read_credentials(path: Path) -> Mapping[str, CredentialsLogin]:
    """The logins by name. Raises ConfigError where the file cannot be used.

    Others may be able to read it, which is a warning: Strimzi mounts it with mode 0444 on
    Kubernetes (0440 on OpenShift), and nobody can change that.
    """
    if check_secret(path, "the logins ", published=True):
        words = f"others can read the passwords in {path}; restrict its mode if you can"
        _log.warning("%s", words, extra=named(LogEvent.SECRET_READABLE))
    lines = Properties(path, read_properties(path))
    if not lines.by_key:
        raise ConfigError(f"{path} has no login; write a line NAME: PASSWORD, ROLE for each")
    if len(lines.by_key) > MOST_LOGINS:
        raise ConfigError(f"{path} has more than {MOST_LOGINS} logins")
    return {name: _login(lines, name) for name in lines.by_key}


def _login(lines: Properties, name: str) -> CredentialsLogin:
    try:
        check_login_name(name)
    except ConfigError as exc:
        raise ConfigError(f"{lines.path}: {exc}") from exc
    password, *roles = (part.strip() for part in lines.by_key[name].value.split(","))
    unknown = [role for role in roles if role not in ROLES]
    if unknown or not roles:
        problem = f"the role {unknown[0]!r} is unknown" if unknown else "its role is missing"
        raise lines.fault(name, printable(f"{problem}; write PASSWORD, and {' or '.join(ROLES)}"))
    plain = _plain(lines, name, password)
    role = max((ROLES[role] for role in roles), key=list(Role).index)
    return CredentialsLogin(
        role=role, password=password_hash(plain), is_md5=password.startswith("MD5:")
    )


def _plain(lines: Properties, name: str, password: str) -> str:
    """The password, or its MD5 with the prefix. Raises ConfigError for what Jetty refuses, too."""
    if not password:
        raise lines.fault(name, "its password is empty")
    if len(password.encode("utf-8", "replace")) > MOST_SECRET:
        raise lines.fault(name, f"its password has more than {MOST_SECRET} bytes")
    if password.startswith("CRYPT:"):
        raise lines.fault(name, "CRYPT passwords are not supported; write it plainly, or as MD5")
    if password.startswith("MD5:"):
        if not _MD5.fullmatch(password):
            raise lines.fault(name, "MD5: is followed by 32 hexadecimal digits")
        return f"MD5:{password[4:].lower()}"
    if password.startswith("OBF:"):
        found = _OBFUSCATED.fullmatch(password)
        text = None if found is None else _revealed(found[1])
        if text is None:
            raise lines.fault(name, "the password after OBF: is damaged")
        return text
    return password


def _revealed(text: str) -> str | None:
    """The password of an `OBF:` text (Jetty's `Password.deobfuscate`); None if it is damaged."""
    found = bytearray()
    for part in re.findall(r"U?[0-9a-z]{4}", text):
        number = int(part.removeprefix("U"), 36)
        high, low = divmod(number, 256)
        byte = high if part.startswith("U") else (high + low - 254) // 2
        if not 0 <= byte < 256:
            return None
        found.append(byte)
    try:
        return found.decode()
    except UnicodeDecodeError:
        return None
