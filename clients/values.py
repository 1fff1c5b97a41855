"""The values of a properties file, and faults that name a key and the file."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from clients.properties import Property
from model.bounded import MOST_TYPED_BYTES, read_bytes
from model.errors import ConfigError
from model.exchange.text_files import fault

_PROVIDER: Final = re.compile(r"\$\{\w+:.*\}")


@dataclass(frozen=True, slots=True)
class Values:
    """What a file says. No value is part of an error: it may be a secret."""

    path: Path
    properties: Mapping[str, Property] = field(repr=False)

    def get(self, *keys: str) -> str | None:
        """The value of the one of these keys that is set; None or empty as it is.

        Raises ConfigError where two of them are, or a value is left to be looked up.
        """
        given = self.given(keys)
        if not given:
            return None
        if len(given) > 1:
            raise self.fault(
                given[1], f"it says what {given[0]} says, too; keep one of them"
            )
        value = self.properties[given[0]].value
        if _PROVIDER.search(value):
            raise self.fault(
                given[0],
                "plimsoll does not look up ${...}, as Java's config providers do; "
                "write the value itself",
            )
        return value

    def needed(self, *keys: str, why: str) -> str:
        """As `get`; raises ConfigError also where none is set, or it is empty."""
        value = self.get(*keys)
        if not value:
            given = self.given(keys)
            if given:
                raise self.fault(given[0], f"it is empty; {why}")
            raise ConfigError(f"{self.path}: {' or '.join(keys)} is missing; {why}")
        return value

    def given(self, keys: Collection[str]) -> list[str]:
        """Those of the keys that are set."""
        return [key for key in keys if key in self.properties]

    def fault(self, key: str, words: str) -> ConfigError:
        """An error that names the key, the file and its line."""
        return fault(self.path, self.properties[key].line, f"{key}: {words}")

    def text_of(self, key: str) -> str:
        """The text of the file that a key names; bytes that are no text replaced."""
        try:
            data = read_bytes(Path(self.get(key) or ""), MOST_TYPED_BYTES)
        except ConfigError as exc:
            raise self.fault(key, str(exc)) from exc
        return data.decode("utf-8", "replace")
