"""Pictures for docs/ show their text in every viewer, not only in lenient ones."""

from pathlib import Path

import pytest

from benchmarks.picture_faults import faults, write_picture
from tests.support.paths import ROOT

PICTURES = ROOT / "docs" / "pictures"
FAULTY = {
    "'9a' is no CSS identifier": '<text class="9a" fill="#fff" x="0" y="20">name</text>',
    "'grey' has no colour": '<text class="c" x="0" y="20">grey</text>',
    "'hidden' has the colour behind it": '<text class="a" x="0" y="20">hidden</text>',
}


def pictures() -> list[Path]:
    return sorted(PICTURES.rglob("*.svg"))


def picture(text: str) -> str:
    return (
        '<svg xmlns="http://www.w3.org/2000/svg">'
        "<style>.a { fill: #222222 } .c { font-weight: bold }</style>"
        '<rect fill="#222222" x="0" y="0" width="90" height="24"/>'
        '<rect fill="#444444" x="50" y="0" width="40" height="24"/>'
        f'{text}<text class="a" x="60" y="20">seen</text></svg>'
    )


def test_there_are_pictures() -> None:
    assert len(pictures()) >= 20


@pytest.mark.parametrize("file", pictures(), ids=lambda file: file.stem)
def test_each_picture_can_be_read(file: Path) -> None:
    assert faults(file.read_text("utf-8")) == []


@pytest.mark.parametrize(("fault", "text"), FAULTY.items())
def test_a_picture_with_a_fault_is_not_written(fault: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / "new" / "plan.svg"
    with pytest.raises(SystemExit, match=fault):
        write_picture(file, picture(text))
    assert not file.exists()


def test_a_picture_without_a_fault_is_written(tmp_path: Path) -> None:
    file = tmp_path / "new" / "plan.svg"
    write_picture(file, picture(""))
    assert file.read_text("utf-8") == picture("")
