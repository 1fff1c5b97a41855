import re
from pathlib import Path

import pytest

from docs.dialect import FOLDERS, NAMES, OWN, PHRASES, ROOT, in_files, in_markdown, in_python


@pytest.mark.parametrize(
    ("sentence", "phrase"),
    [
        ("The run that was cut off is gone on with.", "gone on with"),
        ("The throttle of the run of before stays.", "of before"),
        ("The file that was given is no TOML.", "is no TOML"),
        ("The estimate is made anew each time.", "anew"),
        ("A move under way is left alone.", "under way"),
        ("The hours to come have more load.", "hours to come"),
        ("The dearest partition of all is first.", "dearest"),
        ("Names are known by whoever is asked; told by nobody.", "told by"),
        ("What is odd is said once at the end.", "What is odd is said"),
        ("The balancer of the cluster stands down.", "stands down"),
        ("The batch holds what is no sample at all.", "holds what is no"),
        ("A command that waits as it is told.", "as it is told"),
    ],
)
def test_planted_sentences_are_found(sentence: str, phrase: str) -> None:
    for source in (f'"""{sentence}"""\n', f"x = 1  # {sentence}\n"):
        phrases = [f.phrase for f in in_python(source, "planted.py")]
        assert phrase in phrases
    assert phrase in [f.phrase for f in in_markdown(f"# Title\n\n{sentence}\n", "p")]


def test_line_column_and_replacement_are_named() -> None:
    source = 'def f():\n    """Return a plan.\n\n    It is made anew.\n    """\n'
    (finding,) = in_python(source, "planted.py")
    assert (finding.line, finding.column) == (4, 16)
    assert str(finding) == "planted.py:4:16: 'anew': write again"


def test_a_phrase_over_a_line_break_is_found() -> None:
    (finding,) = in_markdown("A long sentence that is under\nway for long.\n", "p")
    assert finding.line == 1


def test_names_of_tests_are_read() -> None:
    (finding,) = in_python("def test_it_is_made_anew() -> None: ...\n", "t.py")
    assert finding.phrase == "anew"


def test_names_of_tests_have_further_phrases() -> None:
    (finding,) = in_python("def test_what_is_odd_fails() -> None: ...\n", "t.py")
    assert (finding.phrase, finding.column) == ("test what", 5)
    assert not list(in_python('"""A plan shows what is copied by it."""\n', "t.py"))


def test_a_phrase_over_adjacent_literals_is_found() -> None:
    source = 'x = (\n    f"The file {name} is no "\n    "text in UTF-8."\n)\n'
    (finding,) = in_python(source, "planted.py")
    assert (finding.line, finding.phrase) == (3, "is no text")


@pytest.mark.parametrize(
    "source",
    ['STATE = "cut off"\n', 'x = "there is no plan yet, so wait"\n', "def moved_anew(): ...\n"],
)
def test_values_and_plain_sentences_are_not_reported(source: str) -> None:
    assert not list(in_python(source, "plain.py"))


def test_code_in_markdown_is_not_read() -> None:
    assert not list(in_markdown("The event `went on with` and\n```\nanew\n```\n", "p"))


def test_each_phrase_compiles_and_has_a_replacement() -> None:
    for pattern, instead in (PHRASES | NAMES).items():
        re.compile(pattern)
        assert instead


def test_folders_and_exceptions_exist() -> None:
    assert all((ROOT / f).is_dir() for f in FOLDERS)
    assert all((ROOT / f).exists() for f in OWN)


def test_files_of_a_folder_are_read(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "a.py").write_text("# It was made anew by hand.\n")
    (tmp_path / "README.md").write_text("A move under way.\n")
    paths = [f.path for f in in_files(tmp_path, ())]
    assert paths == ["README.md", "model/a.py"]
    assert [f.path for f in in_files(tmp_path, ("model/",))] == ["README.md"]
