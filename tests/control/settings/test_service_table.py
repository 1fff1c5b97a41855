"""Where the service may listen: on this machine, or with TLS and logins."""

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
        ("10.0.0.1:9645", "10.0.0.1", 9645, "http://10.0.0.1:9645"),
        ("[2001:DB8::0]:9645", "2001:db8::", 9645, "http://[2001:db8::]:9645"),
    ],
)
def test_addresses_and_ports_are_accepted(text: str, host: str, port: int, url: str) -> None:
    address = listen_address(text)
    assert (address.host, address.port, address.url) == (host, port, url)


@pytest.mark.parametrize(
    ("text", "message"),
    [
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


CERTIFICATE = 'tls_certificate = "server.pem"\n'


@pytest.mark.parametrize("listen", ["0.0.0.0:1", "192.168.1.4:1", "[::]:1", "[::ffff:a01:1]:1"])
@pytest.mark.parametrize("more", ["", CERTIFICATE, 'logins = "logins.toml"\n'])
def test_other_machines_are_served_with_tls_and_logins_alone(
    tmp_path: Path, listen: str, more: str
) -> None:
    file = tmp_path / "plimsoll.toml"
    file.write_text(f'[service]\nlisten = "{listen}"\n{more}')
    message = "can be reached from other machines: set tls_certificate and logins"
    with pytest.raises(ConfigError, match=rf"plimsoll\.toml, line 1: .*{message}"):
        load({}, config=file)
    file.write_text(f'[service]\nlisten = "{listen}"\n{CERTIFICATE}logins = "~/logins.toml"\n')
    found = load({}, config=file).service
    assert found.logins == Path.home() / "logins.toml"
    assert not found.address.is_loopback


def test_a_key_needs_its_certificate(tmp_path: Path) -> None:
    file = tmp_path / "plimsoll.toml"
    file.write_text('[service]\ntls_key = "key.pem"\n')
    with pytest.raises(ConfigError, match="tls_key needs tls_certificate"):
        load({}, config=file)


def test_the_default_is_on_loopback() -> None:
    assert ServiceTable().address == ("127.0.0.1", 9645)
    assert ServiceTable().cruise_control_address == ("127.0.0.1", 9090)


def test_cruise_controls_api_is_off_by_default(tmp_path: Path) -> None:
    assert ServiceTable().cruise_control_api is CruiseControlAccess.OFF
    file = tmp_path / "plimsoll.toml"
    file.write_text('[service]\ncruise_control_api = "execute"\n')
    assert load({}, config=file).service.cruise_control_api is CruiseControlAccess.EXECUTE
    file.write_text('[service]\ncruise_control_api = "yes"\n')
    with pytest.raises(ConfigError, match=r"plimsoll\.toml, line 2: "):
        load({}, config=file)


@pytest.mark.parametrize("more", ["", CERTIFICATE, 'cruise_control_logins = "x.authFile"\n'])
def test_other_machines_use_cruise_controls_api_with_tls_and_logins_alone(
    tmp_path: Path, more: str
) -> None:
    file = tmp_path / "plimsoll.toml"
    listen = '[service]\ncruise_control_listen = "0.0.0.0:9090"\n'
    file.write_text(listen + more)
    message = (
        "cruise_control_listen: 0.0.0.0 can be reached from other machines: set tls_certificate, "
        "and cruise_control_logins or logins"
    )
    with pytest.raises(ConfigError, match=message):
        load({}, config=file)
    for logins in ("logins", "cruise_control_logins"):
        file.write_text(f'{listen}{CERTIFICATE}{logins} = "~/file"\n')
        assert not load({}, config=file).service.cruise_control_address.is_loopback


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('standby_lease = "kubernetes"', "standby_lease needs standby = true"),
        ('standby = true\nstandby_lease = "etcd"', "standby_lease"),
        ('standby_namespace = "Kafka"', "standby_namespace"),
        ('standby_namespace = "../x"', "standby_namespace"),
    ],
)
def test_a_lease_that_cannot_be_held_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "own.toml"
    file.write_text(f"[service]\n{text}\n")
    with pytest.raises(ConfigError, match=message):
        load({}, config=file)
