"""Logins: the file that holds them, and what clients send."""

import base64
from itertools import count
from pathlib import Path

import pytest

from control.service.logins import (
    Logins,
    Role,
    check_password,
    credentials,
    new_token,
    password_hash,
    token_hash,
)
from model.errors import ConfigError

PASSWORD = "correct horse"
HASH = password_hash(PASSWORD)


def written(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "logins.toml"
    path.write_text(text)
    path.chmod(mode)
    return path


def eve(role: str = "operator", password: str = HASH) -> str:
    return f'[eve]\nrole = "{role}"\npassword = "{password}"\n'


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


def test_a_password_fits_its_own_name_alone(tmp_path: Path) -> None:
    logins = Logins(written(tmp_path, eve() + f'[bob]\nrole = "viewer"\npassword = "{HASH}"\n'))
    assert logins.of_password("eve", PASSWORD) is Role.OPERATOR
    assert logins.of_password("bob", PASSWORD) is Role.VIEWER
    assert logins.of_password("eve", PASSWORD + "!") is None
    assert logins.of_password("nobody", PASSWORD) is None
    assert logins.of_password("eve", "") is None


def test_equal_passwords_have_different_hashes() -> None:
    assert password_hash(PASSWORD) != HASH


def test_a_password_that_has_fitted_is_remembered_until_it_changes(tmp_path: Path) -> None:
    logins = Logins(written(tmp_path, eve()))
    assert logins.remembered("eve", PASSWORD) is None
    logins.of_password("eve", PASSWORD)
    assert logins.remembered("eve", PASSWORD) is Role.OPERATOR
    assert logins.remembered("eve", "another") is None
    written(tmp_path, eve(password=password_hash("another one")))
    logins.reload()
    assert logins.remembered("eve", PASSWORD) is None
    assert logins.of_password("eve", PASSWORD) is None


def test_tokens_name_their_client(tmp_path: Path) -> None:
    token = new_token()
    text = eve() + f'[grafana]\nrole = "viewer"\ntoken = "{token_hash(token)}"\n'
    logins = Logins(written(tmp_path, text))
    assert logins.of_token(token) == ("grafana", Role.VIEWER)
    assert logins.of_token(new_token()) is None
    # The name and the hash in the file are no token.
    assert logins.of_token(token_hash(token)) is None
    assert logins.of_password("grafana", token) is None


def test_roles_include_those_before_them() -> None:
    assert Role.ADMIN.includes(Role.OPERATOR)
    assert Role.OPERATOR.includes(Role.VIEWER)
    assert not Role.VIEWER.includes(Role.OPERATOR)
    assert not Role.OPERATOR.includes(Role.ADMIN)


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, eve(), 0o604)
    with pytest.raises(ConfigError, match=r"others can read or change the logins .*; chmod 600 it"):
        Logins(path)
    # As volumes of Kubernetes mount it.
    path.chmod(0o440)
    Logins(path)
    path.chmod(0o644)
    with pytest.raises(ConfigError, match="others can read or change the logins"):
        Logins(path).reload()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no login; plimsoll login prints one"),
        ("[eve]\n", "eve.role: Field required"),
        ('[eve]\nrole = "viewer"\n', "eve has neither password nor token"),
        ('[eve]\nrole = "king"\npassword = "x"\n', "eve.role: "),
        ('[eve]\nrole = "viewer"\npassword = "secret"\n', "not a hash of a password"),
        ('[eve]\nrole = "viewer"\ntoken = "secret"\n', "eve.token: "),
        ('[eve]\nrole = "viewer"\ncolour = "red"\n', "eve.colour: "),
        ('["e\\u001bve"]\nrole = "viewer"\ntoken = "x"\n', r"e\x1bve.token: "),
        (eve().replace("[eve]", '["e:ve"]'), "is not a name"),
        (eve(password=HASH.replace("16384", "3")), "scrypt parameters cannot be used"),
        (eve(password=HASH.replace("16384", "1048576")), "scrypt parameters cannot be used"),
        ("eve = 1\n", "eve: "),
        ("[eve\n", "is not valid TOML"),
        ("\x00", "is not valid TOML"),
    ],
    ids=count(),  # Hashes are salted, and ids must be the same in all test processes.
)
def test_a_file_that_cannot_be_used_is_named_with_the_place(
    tmp_path: Path, text: str, message: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        Logins(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert str(caught.value).isprintable()
    # A password that was stored by mistake is not repeated.
    assert "secret" not in str(caught.value)


def test_a_missing_file_or_a_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        Logins(tmp_path / "logins.toml")
    with pytest.raises(ConfigError, match="not a regular file"):
        Logins(tmp_path)


def test_a_reload_with_a_broken_file_keeps_the_former_logins(tmp_path: Path) -> None:
    logins = Logins(written(tmp_path, eve()))
    written(tmp_path, "[")
    with pytest.raises(ConfigError):
        logins.reload()
    assert logins.of_password("eve", PASSWORD) is Role.OPERATOR


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (basic("eve:a:b"), ("eve", "a:b")),
        (basic("eve:"), ("eve", "")),
        (basic("eve:é"), ("eve", "é")),
        ("bEARER  abc", ("", "abc")),
        ("Bearer", ("", "")),
        (basic(":secret"), None),
        (basic("eve"), None),
        ("Basic ***", None),
        ("Basic /w==", None),
        ("Digest x", None),
        ("", None),
        (basic("e:" + "x" * 10_000), None),
    ],
)
def test_authorization_headers(header: str, expected: tuple[str, str] | None) -> None:
    assert credentials(header) == expected


def test_short_passwords_are_refused() -> None:
    assert check_password(PASSWORD) == PASSWORD
    for password in ("", "short", "x" * 2000):
        with pytest.raises(ConfigError, match="a password has 8 to 1024 bytes"):
            check_password(password)
