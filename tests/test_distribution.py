"""The content and version of the wheel; `make dist` builds one."""

import re
import tomllib
from pathlib import Path
from typing import Any

from model import __version__

ROOT = Path(__file__).parents[1]
NOT_SHIPPED = {"tests", "benchmarks", "docs"}


def project() -> Any:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_every_package_is_in_the_wheel_and_in_the_layers() -> None:
    result = {path.parent.name for path in ROOT.glob("*/__init__.py")} - NOT_SHIPPED
    tool = project()["tool"]
    assert set(tool["hatch"]["build"]["targets"]["wheel"]["packages"]) == result
    assert set(tool["importlinter"]["root_packages"]) == result


def test_git_ignores_no_data_file_of_a_package() -> None:
    """Hatch omits ignored files from the wheel."""
    ignored = [re.escape(p) for p in (".tsv", ".properties", ".checkpoint", ".typed")]
    rules = (ROOT / ".gitignore").read_text().splitlines()
    assert not [rule for rule in rules if re.search("|".join(ignored), rule)]


def test_the_changelog_has_the_version() -> None:
    """A version in development is described as unreleased, above the last release."""
    text = (ROOT / "CHANGELOG.md").read_text()
    headings = re.findall(r"^## (\S+)", text, re.MULTILINE)
    released = [heading for heading in headings if heading != "Unreleased"]
    assert headings[0] == "Unreleased"
    if ".dev" in __version__:
        assert __version__.partition(".dev")[0] not in released
    else:
        assert released[0] == __version__
