"""Tables of which a part may be measured anew."""

import re
from pathlib import Path


def known_sections(table: Path) -> dict[str, str]:
    """The sections of a table as it is, by title."""
    if not table.exists():
        return {}
    parts = re.split(r"^(?=## )", table.read_text(), flags=re.MULTILINE)[1:]
    return {part[3:].partition("\n")[0]: part.rstrip("\n") + "\n" for part in parts}
