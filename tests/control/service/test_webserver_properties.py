"""How Cruise Control's own properties protect its API, as Strimzi and others write them."""

from pathlib import Path

import pytest

from control.service.http_access import HttpAccess
from control.service.webserver_properties import webserver_files
from control.settings.service_table import ServiceTable
from model.errors import ConfigError
from tests.support.tls_certificates import Authority

# The keys of Strimzi's cruise_control_config_generator.sh and of its CruiseControlConfiguration.
STRIMZI = """webserver.http.address=0.0.0.0
webserver.ssl.keystore.location=/tmp/cruise-control/cruise-control.keystore.p12
webserver.ssl.keystore.password=Wmx5
webserver.ssl.keystore.type=PKCS12
webserver.ssl.key.password=Wmx5
webserver.security.enable=true
webserver.auth.credentials.file={0}/cruise-control.authFile
webserver.ssl.enable=true
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "cruisecontrol.properties"
    path.write_text(text.format(folder))
    return path


def test_strimzis_properties_name_the_logins_and_need_the_certificate_as_pem(
    tmp_path: Path,
) -> None:
    path = written(tmp_path, STRIMZI)
    found = webserver_files(path, has_certificate=True)
    assert found.credentials == tmp_path / "cruise-control.authFile"
    assert found.certificate is None
    message = r"line 8: webserver\.ssl\.enable: a PKCS12 store is not supported here: set tls_cert"
    with pytest.raises(ConfigError, match=message) as caught:
        webserver_files(path, has_certificate=False)
    assert "Wmx5" not in str(caught.value)


def test_without_the_keys_nothing_is_protected(tmp_path: Path) -> None:
    found = webserver_files(written(tmp_path, "num.windows=5\n"), has_certificate=False)
    assert (found.credentials, found.certificate) == (None, None)


def test_a_pem_store_is_the_certificate(tmp_path: Path) -> None:
    text = "webserver.ssl.enable=TRUE\nwebserver.ssl.keystore.type=PEM\n"
    path = written(tmp_path, text)
    with pytest.raises(ConfigError, match=r"keystore\.location is missing"):
        webserver_files(path, has_certificate=False)
    path = written(tmp_path, text + "webserver.ssl.keystore.location=/etc/server.pem\n")
    assert webserver_files(path, has_certificate=False).certificate == Path("/etc/server.pem")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("webserver.security.enable=yes\n", "webserver.security.enable: it is true or false"),
        (
            "webserver.security.enable=true\nwebserver.security.provider=a.JwtSecurityProvider\n",
            "line 2: webserver.security.provider: only BasicSecurityProvider is supported",
        ),
    ],
)
def test_unsupported_keys_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        webserver_files(written(tmp_path, text), has_certificate=False)


def test_the_settings_go_first_and_both_are_needed_beyond_loopback(tmp_path: Path) -> None:
    properties = written(tmp_path, STRIMZI)
    (tmp_path / "cruise-control.authFile").write_text("eve: one, USER\n")
    (tmp_path / "mine").write_text("bob: two, USER\n")
    certificate = Authority.make("ca").issue(tmp_path / "server.pem", "server")
    table = {
        "cruise_control_listen": "0.0.0.0:9090",
        "cruise_control_properties": properties,
        "tls_certificate": certificate,
    }
    found = HttpAccess.of_cruise_control(ServiceTable.model_validate(table))
    assert found.tls is not None
    assert found.logins is not None
    assert found.logins.of_password("eve", "one")
    table["cruise_control_logins"] = tmp_path / "mine"
    found = HttpAccess.of_cruise_control(ServiceTable.model_validate(table))
    assert found.logins is not None
    assert found.logins.of_password("eve", "one") is None
    assert found.logins.of_password("bob", "two")
    del table["cruise_control_logins"]
    properties.write_text("num.windows=5\n")
    with pytest.raises(ConfigError, match=r"0\.0\.0\.0 can be reached from other machines"):
        HttpAccess.of_cruise_control(ServiceTable.model_validate(table))
