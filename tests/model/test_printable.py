import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from model.printable import masked, printable

ANY = st.text(st.characters(), max_size=40)
HARMFUL = ("Cc", "Cf", "Cs", "Zl", "Zp")


@given(ANY)
def test_no_harmful_character_is_left(text: str) -> None:
    for made in (printable(text), masked(text)):
        assert not [c for c in made if unicodedata.category(c) in HARMFUL]


@given(ANY)
def test_printable_text_and_its_width_are_unchanged(text: str) -> None:
    assert len(masked(text)) == len(text)
    if text.isprintable():
        assert printable(text) == masked(text) == text


def test_escapes_follow_python_and_exceptions_are_preserved() -> None:
    assert printable("a\x1b\u202e\ud800é") == "a\\x1b\\u202e\\ud800é"
    assert printable("a\nb\t", keep="\n") == "a\nb\\t"
