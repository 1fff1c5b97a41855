"""No name escapes its folder, and no two names are confused."""

from pathlib import PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.paths import path_part

NAMES = st.text(st.characters(), max_size=300) | st.sampled_from(
    ["", ".", "..", "%", "%2E", "%2E.", "../../escape", "/", "a\0", "\ud800", "CON"]
)


@pytest.mark.parametrize(
    "name",
    [
        "2q-H2y2PRoyGktIr6q4Lrg",
        "MkU3OEVBNTcwNTJENDM2Qk",
        "_-abcdefghijklmnopqrst",
        "r00000042-20261123T051200123-1a2b3c4d",
        "20261123T051200123-1a2b3c4d",
        "orders.v1_eu-west",
        "__plimsoll_samples",
        "t" * 199,
    ],
)
def test_ordinary_names_are_kept(name: str) -> None:
    assert path_part(name) == name


@settings(deadline=None, max_examples=500)
@given(name=NAMES)
def test_every_name_is_one_component(name: str) -> None:
    part = path_part(name)
    assert part.isascii()
    assert part.isprintable()
    assert 0 < len(part) <= 200
    assert PurePosixPath("/folder", part).parts == ("/", "folder", part)
    assert part not in (".", "..")
    assert not part.startswith(".")


@settings(deadline=None, max_examples=500)
@given(one=NAMES, other=NAMES)
def test_different_names_stay_different(one: str, other: str) -> None:
    assert (one == other) == (path_part(one) == path_part(other))


def test_long_names_that_begin_alike_stay_different() -> None:
    assert path_part("x" * 5000) != path_part("x" * 5001)
