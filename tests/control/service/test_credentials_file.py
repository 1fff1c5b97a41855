"""Cruise Control's file of logins, as Strimzi writes it and as Jetty reads it."""

import logging
from pathlib import Path

import pytest

from control.service.credentials_file import MOST_LOGINS, read_credentials
from control.service.logins import Logins, Role
from model.errors import ConfigError

# The form of Strimzi's secret `NAME-cruise-control-api`, with passwords of this test.
STRIMZI = """rebalance-operator: lYvM1cUDpWmK,ADMIN
healthcheck: 9bXfGzqL0aTe, USER
topic-operator: m3WvJx2hQs7n,ADMIN
"""


def written(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "cruise-control.authFile"
    path.write_text(text)
    path.chmod(mode)
    return path


def logins(folder: Path, text: str) -> Logins:
    return Logins(written(folder, text), read_credentials)


def test_strimzis_users_have_their_roles(tmp_path: Path) -> None:
    found = logins(tmp_path, STRIMZI)
    assert found.of_password("rebalance-operator", "lYvM1cUDpWmK") is Role.ADMIN
    assert found.of_password("healthcheck", "9bXfGzqL0aTe") is Role.OPERATOR
    assert found.of_password("healthcheck", "lYvM1cUDpWmK") is None
    assert found.of_password("nobody", "9bXfGzqL0aTe") is None
    assert found.of_token("lYvM1cUDpWmK") is None
    assert found.remembered("healthcheck", "9bXfGzqL0aTe") is Role.OPERATOR


@pytest.mark.parametrize(
    ("stored", "password"),
    [
        ("a:b=c#d", "a:b=c#d"),
        # The passwords that Jetty's documentation has as examples.
        ("OBF:1v2j1uum1xtv1zej1zer1xtn1uvk1v1v", "password"),
        ("OBF:1vny1zlo1x8e1vnw1vn61x8g1zlu1vn4", "storepwd"),
        # As `printf me | md5sum` prints them; the second in ISO 8859-1.
        ("MD5:ab86a1e1ef70dff97959067b723c5c24", "me"),
        ("MD5:0126CF1F6E0DBA240AF4C5537CA51D0E", "pässword"),
    ],
)
def test_passwords_are_plain_or_in_the_forms_of_jettys_tool(
    tmp_path: Path, stored: str, password: str
) -> None:
    found = logins(tmp_path, f"eve: {stored}, VIEWER, USER\n")
    assert found.of_password("eve", password) is Role.OPERATOR
    assert found.of_password("eve", stored) is (Role.OPERATOR if stored == password else None)
    assert found.of_password("eve", "") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no login"),
        ("# eve: x, USER\n", "has no login"),
        ("eve: secret\n", "line 1: eve: its role is missing; write PASSWORD, and VIEWER or USER"),
        ("eve: secret, KING\n", "the role 'KING' is unknown"),
        ("eve: secret, user\n", "the role 'user' is unknown"),
        ("eve: , USER\n", "its password is empty"),
        ("eve: CRYPT:ad1ks..kc.1Ug, USER\n", "CRYPT passwords are not supported"),
        ("eve: MD5:12, USER\n", "MD5: is followed by 32 hexadecimal digits"),
        ("eve: OBF:1v2, USER\n", "the password after OBF: is damaged"),
        ("eve: OBF:zzzz, USER\n", "the password after OBF: is damaged"),
        ("eve: " + "x" * 2000 + ", USER\n", "its password has more than 1024 bytes"),
        ("e\\:ve: secret, USER\n", "is not a name"),
        ("".join(f"n{n}: x, USER\n" for n in range(MOST_LOGINS + 1)), "more than 100 logins"),
    ],
)
def test_files_that_cannot_be_used_are_refused_without_a_password_in_the_message(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        logins(tmp_path, text)
    assert "cruise-control.authFile" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read the logins .*none: No such file"):
        Logins(tmp_path / "none", read_credentials)


@pytest.mark.parametrize(("mode", "warns"), [(0o440, False), (0o640, False), (0o444, True)])
def test_the_modes_with_which_strimzi_mounts_it_are_accepted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int, warns: bool
) -> None:
    path = written(tmp_path, STRIMZI, mode)
    logging.getLogger("plimsoll").propagate = True
    caplog.set_level(logging.WARNING, "plimsoll")
    assert Logins(path, read_credentials).of_password("healthcheck", "9bXfGzqL0aTe")
    assert (f"others can read the passwords in {path}" in caplog.text) == warns


@pytest.mark.parametrize("mode", [0o660, 0o646])
def test_a_file_that_others_can_change_is_refused(tmp_path: Path, mode: int) -> None:
    path = written(tmp_path, STRIMZI, mode)
    with pytest.raises(ConfigError, match=r"others can read or change the logins .*; chmod 600 it"):
        Logins(path, read_credentials)
