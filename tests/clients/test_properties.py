"""Java's properties files and JAAS texts, by the rules of Java's own readers."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.jaas import parse_jaas, quoted
from clients.properties import read_properties
from model.errors import ConfigError


def read(tmp_path: Path, text: str | bytes) -> dict[str, str]:
    file = tmp_path / "client.properties"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return {key: result.value for key, result in read_properties(file).items()}


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("a=b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("  a  =  b c ", {"a": "b c "}),
        ("a == b", {"a": "= b"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        (r"a\=b\:c\ d=e", {"a=b:c d": "e"}),
        ("# a=b\n ! c=d\n\ne=f", {"e": "f"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b \\\n   c", {"a": "b c"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\\n# c", {"a": "b# c"}),
        ("a=b\\", {"a": "b"}),
        ("a=b\r\nc=d\re=f", {"a": "b", "c": "d", "e": "f"}),
        (r"a=\t\n\u00e9\q", {"a": "\t\né" + "q"}),
        ("a=é".encode("latin-1"), {"a": "é"}),
        ("\ufeffa=b", {"a": "b"}),
        ("", {}),
    ],
)
def test_a_file_reads_as_java_reads_it(
    tmp_path: Path, text: str | bytes, pairs: dict[str, str]
) -> None:
    assert read(tmp_path, text) == pairs


def test_a_property_has_the_line_of_its_key(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# first\na=1\\\n2\\\n3\nb=4\n")
    assert {k: p.line for k, p in read_properties(file).items()} == {"a": 2, "b": 5}


def test_a_malformed_escape_is_reported_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"client\.properties, line 2: \\u needs four"):
        read(tmp_path, "a=b\nc=\\u12g4\n")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*nowhere: No such file"):
        read_properties(tmp_path / "nowhere")


MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@given(st.text(st.characters(exclude_characters="\r", exclude_categories=["Cs"])))
def test_any_quoted_password_reads_back(password: str) -> None:
    options = parse_jaas(f'{MODULE} required username="u" password={quoted(password)};')
    assert options.name == "PlainLoginModule"
    assert options.options == {"username": "u", "password": password}


@pytest.mark.parametrize(
    "text",
    [
        f"{MODULE} required username=\"a b\" password='c;d';",
        f'{MODULE} required\n  username="a b" // who\n  password="c;d" /* what */ ;',
        f'{MODULE}  REQUIRED  username = "a b"  password = "c;d" ;  ',
        rf'{MODULE} required username="\a b" password="c\;d";',
    ],
)
def test_blanks_quotes_and_comments_are_as_in_java(text: str) -> None:
    assert parse_jaas(text).options == {"username": "a b", "password": "c;d"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it must begin with the login module"),
        (f"{MODULE};", "it must begin with the login module"),
        (f'{MODULE} required password="hush"', "it must end with a semicolon"),
        (f'{MODULE} required password="hush;', "a quote in it is not closed"),
        (f'{MODULE} required password "hush";', "write its options as name="),
        (f"{MODULE} required password=;", "write its options as name="),
        (f"{MODULE} required; {MODULE} required;", "write its options as name="),
    ],
)
def test_errors_do_not_contain_the_password(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        parse_jaas(text)
    assert "hush" not in str(caught.value)
