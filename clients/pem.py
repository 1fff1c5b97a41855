"""Keys and certificates as PEM: the one form that all of plimsoll's drivers take."""

import re
import textwrap
from typing import Final

_BLOCK: Final = re.compile(
    r"-----BEGIN (?P<kind>[A-Z0-9 ]+)-----(?P<body>(?:(?!-----).)*)"
    r"-----END (?P=kind)-----",
    re.DOTALL,
)
_WIDTH: Final = 64


def certificates_in(text: str) -> str:
    """The certificates of a text, one after the other; empty where there is none."""
    return _blocks(text, "CERTIFICATE")


def private_key_in(text: str) -> str:
    """The private key of a text; empty where there is none."""
    return _blocks(text, "PRIVATE KEY")


def is_encrypted(key: str) -> bool:
    """Whether a private key opens with a password only."""
    return "BEGIN ENCRYPTED" in key or "Proc-Type: 4,ENCRYPTED" in key


def _blocks(text: str, ending: str) -> str:
    """In lines, as OpenSSL wants them: in a properties file they may stand in one."""
    return "".join(
        f"-----BEGIN {found['kind']}-----\n{_lines(found['body'])}\n"
        f"-----END {found['kind']}-----\n"
        for found in _BLOCK.finditer(text)
        if found["kind"].endswith(ending)
    )


def _lines(body: str) -> str:
    if ":" in body:  # headers of an older form, which stand in lines of their own
        return body.strip()
    return "\n".join(textwrap.wrap("".join(body.split()), _WIDTH))
