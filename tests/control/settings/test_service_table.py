"""Where the service may listen: on this machine alone."""

import re
from pathlib import Path

import pytest

from control.settings.service_table import CruiseControlAccess, ServiceTable, listen_address
from control.settings.settings import load
from model.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "host", "port", "url"),
    [
        ("127.0.0.1:9645", "127.0.0.1", 9645, "http://127.0.0.1:9645"),
        ("127.9.9.9:0", "127.9.9.9", 0, "http://127.9.9.9:0"),
        ("localhost:80", "127.0.0.1", 80, "http://127.0.0.1:80"),
        ("[::1]:9645", "::1", 9645, "http://[::1]:9645"),
    ],
)
def test_loopback_addresses_are_accepted(text: str, host: str, port: int, url: str) -> None:
    address = listen_address(text)
    assert (address.host, address.port, address.url) == (host, port, url)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.0.0.0:9645", "neither TLS nor a login yet; listen on 127.0.0.1:9645"),
        ("192.168.1.4:9645", "can be reached from other machines"),
        ("[::]:9645", "can be reached from other machines"),
        ("[::ffff:10.0.0.1]:9645", "can be reached from other machines"),
        ("::1:9645", "in brackets"),
        ("[::1%lo]:9645", "in brackets"),
        (":9645", "'' is not an IP address"),
        ("kafka.example:9645", "is not an IP address"),
        ("127.0.0.1", "is not HOST:PORT"),
        ("127.0.0.1:", "is not HOST:PORT"),
        ("127.0.0.1:65536", "is not HOST:PORT"),
        ("127.0.0.1:-1", "is not HOST:PORT"),
        ("127.0.0.1:٣", "is not HOST:PORT"),
        ("", "is not HOST:PORT"),
    ],
)
def test_other_addresses_are_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        listen_address(text)


def test_the_settings_name_the_line(tmp_path: Path) -> None:
    file = tmp_path / "plimsoll.toml"
    file.write_text('[service]\nlisten = "0.0.0.0:9645"\n')
    with pytest.raises(ConfigError, match=r"plimsoll\.toml, line 2: .*neither TLS nor a login"):
        load({}, config=file)


def test_the_default_is_on_loopback() -> None:
    assert ServiceTable().address == ("127.0.0.1", 9645)
    assert ServiceTable().cruise_control_address == ("127.0.0.1", 9090)


def test_cruise_controls_api_is_off_by_default_and_on_loopback_alone(tmp_path: Path) -> None:
    assert ServiceTable().cruise_control_api is CruiseControlAccess.OFF
    file = tmp_path / "plimsoll.toml"
    file.write_text('[service]\ncruise_control_api = "execute"\n')
    assert load({}, config=file).service.cruise_control_api is CruiseControlAccess.EXECUTE
    for line in ('cruise_control_api = "yes"', 'cruise_control_listen = "0.0.0.0:9090"'):
        file.write_text(f"[service]\n{line}\n")
        with pytest.raises(ConfigError, match=r"plimsoll\.toml, line 2: "):
            load({}, config=file)
