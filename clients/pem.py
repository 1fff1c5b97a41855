"""Keys and certificates in PEM, the one form that all of plimsoll's drivers accept."""

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
    """Return the certificates in a text, concatenated; empty if there are none."""
    return _blocks(text, "CERTIFICATE")


def private_key_in(text: str) -> str:
    """Return the private key in a text; empty if there is none."""
    return _blocks(text, "PRIVATE KEY")


def is_encrypted(key: str) -> bool:
    """Whether a private key in PEM is encrypted with a password."""
    return "BEGIN ENCRYPTED" in key or "Proc-Type: 4,ENCRYPTED" in key


def _blocks(text: str, ending: str) -> str:
    """Blocks in lines of 64, as OpenSSL needs; a properties file may have one line."""
    return "".join(
        f"-----BEGIN {found['kind']}-----\n{_lines(found['body'])}\n-----END {found['kind']}-----\n"
        for found in _BLOCK.finditer(text)
        if found["kind"].endswith(ending)
    )


def _lines(body: str) -> str:
    if ":" in body:  # headers of an older form, which stand in lines of their own
        return body.strip()
    return "\n".join(textwrap.wrap("".join(body.split()), _WIDTH))
