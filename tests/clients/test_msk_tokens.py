"""Logins to Amazon MSK: properties, tokens that AWS' own library signs, and their renewal."""

import base64
import importlib.util
import sys
import urllib.parse
from pathlib import Path

import pytest

from clients.client_properties import read_client_properties
from clients.connection import ClientProperties, Connection, MskIam, Tls
from clients.driver_configs import confluent_settings, spark_options
from clients.msk_tokens import MskTokens, region_of
from model.errors import AccessRefused, ConfigError

BROKER = "b-1.demo.abcdef.c2.kafka.eu-central-1.amazonaws.com:9098"
MODULE = "software.amazon.msk.auth.iam.IAMLoginModule required"
HEAD = ("security.protocol=SASL_SSL", "sasl.mechanism=AWS_MSK_IAM")
HANDLER = "sasl.client.callback.handler.class=software.amazon.msk.auth.iam.IAMClientCallbackHandler"
needs_signer = pytest.mark.skipif(
    importlib.util.find_spec("aws_msk_iam_sasl_signer") is None, reason="needs the extra msk"
)


def read(folder: Path, *lines: str) -> ClientProperties:
    file = folder / "client.properties"
    file.write_text("\n".join([*HEAD, *lines]))
    return read_client_properties(file)


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Those of AWS' documentation, and no others."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": str(tmp_path / "none"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
    }.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((f"sasl.jaas.config={MODULE};", HANDLER), MskIam()),
        ((), MskIam()),
        ((f'sasl.jaas.config={MODULE} awsProfileName="ops";',), MskIam(profile="ops")),
        (
            (
                f'sasl.jaas.config={MODULE} awsRoleArn="arn:aws:iam::1:role/x" '
                'awsRoleSessionName="plimsoll" awsDebugCreds="true";',
            ),
            MskIam(role_arn="arn:aws:iam::1:role/x", role_session="plimsoll"),
        ),
    ],
)
def test_properties_of_kafkas_tools_are_accepted(
    tmp_path: Path, lines: tuple[str, ...], expected: MskIam
) -> None:
    found = read(tmp_path, *lines)
    assert found.sasl == expected
    assert found.protocol == "SASL_SSL"
    assert "AWS_MSK_IAM" in found.login_name


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((f'sasl.jaas.config={MODULE} awsStsEndpoint="x";',), "its option awsStsEndpoint is not"),
        (
            (f'sasl.jaas.config={MODULE} awsProfileName="a" awsRoleArn="b";',),
            "give awsProfileName or awsRoleArn, not both",
        ),
        (("sasl.username=a",), "sasl.username: it does not fit the mechanism AWS_MSK_IAM"),
        (
            ("sasl.jaas.config=org.apache.kafka.PlainLoginModule required;",),
            "PlainLoginModule does not fit the mechanism AWS_MSK_IAM, which needs IAMLoginModule",
        ),
    ],
)
def test_unusable_properties_are_reported(
    tmp_path: Path, lines: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        read(tmp_path, *lines)


@pytest.mark.usefixtures("credentials")
def test_the_region_is_that_of_the_brokers_or_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert region_of(Connection(BROKER)) == "eu-central-1"
    serverless = "boot-x.c1.kafka-serverless.us-east-1.amazonaws.com:9098"
    assert region_of(Connection(f"proxy:1,{serverless}")) == "us-east-1"
    with pytest.raises(ConfigError, match="set AWS_REGION"):
        region_of(Connection("proxy:1"))
    monkeypatch.setenv("AWS_REGION", "ap-southeast-2")
    assert region_of(Connection("proxy:1")) == "ap-southeast-2"


def test_spark_logs_in_with_the_library_for_java() -> None:
    client = ClientProperties(tls=Tls(), sasl=MskIam(profile='o"ps'))
    options = spark_options(Connection(BROKER, 1.0, client))
    assert options["kafka.sasl.mechanism"] == "AWS_MSK_IAM"
    assert options["kafka.sasl.jaas.config"] == f'{MODULE} awsProfileName="o\\"ps";'
    assert options["kafka.sasl.client.callback.handler.class"].endswith("IAMClientCallbackHandler")


@needs_signer
@pytest.mark.usefixtures("credentials")
def test_a_token_is_signed_for_the_region_and_renewed_in_time() -> None:
    import time

    now_s = [time.time()]
    tokens = MskTokens(MskIam(), Connection(BROKER), clock=lambda: now_s[0])
    first = tokens.current()
    padded = first.text + "=" * (-len(first.text) % 4)
    url = urllib.parse.urlsplit(base64.urlsafe_b64decode(padded).decode())
    query = urllib.parse.parse_qs(url.query)
    assert url.hostname == "kafka.eu-central-1.amazonaws.com"
    assert query["Action"] == ["kafka-cluster:Connect"]
    assert query["X-Amz-Credential"][0].startswith("AKIAIOSFODNN7EXAMPLE/")
    assert 600 < first.ends_at_s - now_s[0] < 1000
    assert tokens.current() is first
    now_s[0] = first.replaced_at_s - 1
    assert tokens.current() is first
    now_s[0] = first.replaced_at_s
    assert tokens.current() is not first


@needs_signer
@pytest.mark.usefixtures("credentials")
def test_drivers_get_tokens_by_their_callback() -> None:
    client = ClientProperties(tls=Tls(), sasl=MskIam())
    settings = confluent_settings(Connection(BROKER, 1.0, client))
    assert settings["sasl.mechanism"] == "OAUTHBEARER"
    text, ends_at_s = settings["oauth_cb"]("")
    assert text
    assert ends_at_s > 1_700_000_000


@needs_signer
@pytest.mark.usefixtures("credentials")
def test_missing_credentials_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AccessRefused, match=r"AWS gave no credentials for MSK .*nobody"):
        MskTokens(MskIam(profile="nobody"), Connection(BROKER)).current()
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(AccessRefused, match=r"AWS gave no credentials for MSK \(none were found"):
        MskTokens(MskIam(), Connection(BROKER)).current()


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
    with pytest.raises(ConfigError, match=r"install plimsoll with the extra msk"):
        MskTokens(MskIam(), Connection(BROKER)).current()
