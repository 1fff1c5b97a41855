"""Connection settings read from `client.properties`, and errors about invalid ones."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from clients.client_properties import read_client_properties
from clients.connection import ClientProperties, Connection, Login, TokenSource
from model.errors import ConfigError
from tests.support.tls_certificates import Authority

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
SECRET = "hush-hush"
LOGIN = f'sasl.jaas.config={PLAIN} required username="alice" password="{SECRET}";'
URL = "sasl.oauthbearer.token.endpoint.url=https://id.example/token"


@dataclass(frozen=True)
class Stores:
    """PEM files that belong together."""

    folder: Path
    ca: Path
    client: Path
    locked: Path
    """With a key encrypted with SECRET."""

    def read(self, *lines: str) -> ClientProperties:
        """The result of a file with these lines; {ca} and so on are file names."""
        file = self.folder / "client.properties"
        files = {"ca": self.ca, "client": self.client, "locked": self.locked}
        file.write_text("\n".join(lines).format(**files, here=self.folder), "utf-8")
        return read_client_properties(file)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    folder = tmp_path_factory.mktemp("stores")
    authority = Authority.make("authority")
    (folder / "jks").write_bytes(b"\xfe\xed\xfe\xed" + bytes(range(128, 256)))
    return Stores(
        folder,
        authority.write(folder / "ca.pem"),
        authority.issue(folder / "client.pem", "alice"),
        authority.issue(folder / "locked.pem", "alice", SECRET),
    )


def test_an_empty_file_sets_nothing(stores: Stores) -> None:
    assert stores.read("") == ClientProperties()


def test_kafkas_spelling_is_accepted(stores: Stores) -> None:
    properties = stores.read(
        "bootstrap.servers=a:1,b:2",
        "client.id=balancer",
        "security.protocol=sasl_ssl",
        "sasl.mechanism=SCRAM-SHA-512",
        f'sasl.jaas.config={SCRAM} required \\\n  username="al\\u00efce" \\\n'
        f'  password="{SECRET}";',
        "ssl.truststore.type=PEM",
        "ssl.truststore.location={ca}",
        "ssl.keystore.type=PEM",
        "ssl.keystore.location={locked}",
        f"ssl.key.password={SECRET}",
        "ssl.endpoint.identification.algorithm=",
    )
    assert (properties.bootstrap, properties.client_id) == ("a:1,b:2", "balancer")
    assert properties.protocol == "SASL_SSL"
    assert properties.sasl == Login(mechanism="SCRAM-SHA-512", username="alïce", password=SECRET)
    assert properties.tls is not None
    assert properties.tls.authorities == stores.ca.read_text()
    assert not properties.tls.check_names
    assert properties.tls.context().get_ca_certs()


def test_librdkafkas_spelling_is_accepted(stores: Stores) -> None:
    properties = stores.read(
        "security.protocol=SASL_SSL",
        "sasl.mechanisms=PLAIN",
        "sasl.username=alice",
        f"sasl.password={SECRET}",
        "ssl.ca.location={ca}",
        "ssl.certificate.location={client}",
        "ssl.key.location={client}",
    )
    assert properties.sasl == Login(mechanism="PLAIN", username="alice", password=SECRET)
    assert properties.tls is not None
    assert properties.tls.check_names
    assert properties.tls.key is not None


def test_certificates_may_be_given_inline_on_one_line(stores: Stores) -> None:
    def in_one_line(file: Path) -> str:
        return " ".join(file.read_text().split("\n"))

    key, _, chain = in_one_line(stores.client).partition("-----BEGIN CERTIFICATE")
    properties = stores.read(
        "security.protocol=SSL",
        f"ssl.truststore.certificates={in_one_line(stores.ca)}",
        f"ssl.keystore.key={key}",
        f"ssl.keystore.certificate.chain=-----BEGIN CERTIFICATE{chain}",
    )
    assert properties.tls is not None
    assert properties.tls.authorities == stores.ca.read_text()
    assert properties.tls.context().get_ca_certs()


@pytest.mark.parametrize(
    "lines",
    [
        [
            f'sasl.jaas.config={OAUTH} required clientId="plimsoll" '
            f'clientSecret="{SECRET}" scope="kafka";',
            "sasl.login.callback.handler.class=some.Handler",
        ],
        [
            f"sasl.jaas.config={OAUTH} required;",
            "sasl.oauthbearer.client.credentials.client.id=plimsoll",
            f"sasl.oauthbearer.client.credentials.client.secret={SECRET}",
            "sasl.oauthbearer.scope=kafka",
        ],
        [
            "sasl.oauthbearer.method=oidc",
            "sasl.oauthbearer.client.id=plimsoll",
            f"sasl.oauthbearer.client.secret={SECRET}",
            "sasl.oauthbearer.scope=kafka",
        ],
    ],
    ids=["in JAAS", "Kafka 4.2", "librdkafka"],
)
def test_client_credentials_are_accepted(stores: Stores, lines: list[str]) -> None:
    head = ("security.protocol=SASL_PLAINTEXT", "sasl.mechanism=OAUTHBEARER", URL)
    assert stores.read(*head, *lines).sasl == TokenSource(
        url="https://id.example/token", client_id="plimsoll", client_secret=SECRET, scope="kafka"
    )


def test_unrelated_keys_are_listed_separately(stores: Stores) -> None:
    properties = stores.read("group.id=g", "security.protocol=SSL", "ssl.protocol=TLSv1.3")
    assert properties.unused == ("group.id", "ssl.protocol")


SASL_SSL = ("security.protocol=SASL_SSL", "sasl.mechanism=PLAIN")
SSL = ("security.protocol=SSL",)
TOKENS = ("security.protocol=SASL_SSL", "sasl.mechanism=OAUTHBEARER")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        # unknown
        (
            (*SSL, "ssl.trustore.location={ca}"),
            r"line 2: ssl.trustore.location: plimsoll does not know this key; did you "
            r"mean 'ssl.truststore.location'",
        ),
        (("security.protocol=TLS",), r"line 1: security.protocol: it must be one of PLAIN"),
        # contradictory
        (
            ("security.protocol=PLAINTEXT", "sasl.mechanism=PLAIN", LOGIN),
            r"line 2: sasl.mechanism: plimsoll would not log in, because "
            r"security.protocol is PLAINTEXT; set it to SASL_SSL",
        ),
        ((LOGIN,), r"sasl.jaas.config: plimsoll would not log in, because .* is missing"),
        (
            ("security.protocol=SASL_PLAINTEXT", "ssl.truststore.location={ca}"),
            r"line 2: ssl.truststore.location: nothing would be encrypted",
        ),
        (
            (*SASL_SSL, LOGIN, "sasl.username=bob"),
            r"line 4: sasl.username: sasl.jaas.config sets the same",
        ),
        (
            (*SASL_SSL, LOGIN.replace(PLAIN, SCRAM)),
            r"its login module ScramLoginModule does not fit the mechanism PLAIN, "
            r"which needs PlainLoginModule",
        ),
        ((*SASL_SSL, LOGIN, URL), r"token.endpoint.url: it does not fit .* PLAIN"),
        (
            (*SSL, "ssl.ca.location={ca}", "ssl.truststore.location={ca}"),
            r"line 2: ssl.ca.location: it means the same as ssl.truststore.location",
        ),
        # missing
        (
            ("security.protocol=SASL_SSL", LOGIN),
            r"sasl.mechanism is missing, and Kafka's default, GSSAPI, is not supported",
        ),
        (SASL_SSL, r"sasl.username is missing; PLAIN needs a user name and a password"),
        ((*SASL_SSL, "sasl.username=a", "sasl.password="), "line 4: sasl.pass.* empty"),
        (
            (*SASL_SSL, f'sasl.jaas.config={PLAIN} required password="{SECRET}";'),
            r'line 3: sasl.jaas.config: username="..." is missing in it',
        ),
        (TOKENS, r"sasl.oauthbearer.token.endpoint.url is missing; plimsoll fetches its"),
        ((*TOKENS, URL), r"client.id or sasl.oauthbearer.client.id is missing"),
        (
            (*SSL, "ssl.certificate.location={client}"),
            r"line 2: ssl.certificate.location: there is a certificate, but no private",
        ),
        (
            (*SSL, "ssl.key.location={client}"),
            r"line 2: ssl.key.location: there is a private key, but no certificate",
        ),
        (
            (*SSL, "ssl.keystore.location={locked}"),
            r"the private key is encrypted; give its password as ssl.key.password",
        ),
        (
            (*SSL, "ssl.truststore.location={here}/none"),
            r"line 2: ssl.truststore.location: cannot read .*none: No such file",
        ),
        # not supported
        (
            (*SSL, "ssl.truststore.type=BCFKS", "ssl.truststore.location=/etc/t"),
            r"line 2: ssl.truststore.type: BCFKS is not supported; it is one of PEM, PKCS12, JKS",
        ),
        (
            (*SSL, "ssl.truststore.type=PEM", "ssl.truststore.location={here}/jks"),
            r"jks contains no certificate in PEM, which begins with -----BEGIN",
        ),
        (
            ("security.protocol=SASL_SSL", "sasl.mechanism=GSSAPI"),
            r"line 2: sasl.mechanism: GSSAPI is not supported; use one of PLAIN, SCRAM",
        ),
        (
            (*SASL_SSL, "sasl.username=a", "sasl.password=${{env:PASSWORD}}"),
            r"line 4: sasl.password: plimsoll does not support Java's config providers "
            r"\(\$\{...\}\)",
        ),
        (
            (*SSL, "ssl.endpoint.identification.algorithm=LDAPS"),
            r"line 2: ssl.endpoint.identification.algorithm: it must be `https`, or",
        ),
        # damaged
        (
            (*SSL, "ssl.keystore.location={locked}", "ssl.key.password=wrong"),
            r"line 2: ssl.keystore.location: ssl.key.password does not open the priv",
        ),
        (
            (*SASL_SSL, LOGIN.replace(";", "")),
            r"line 3: sasl.jaas.config: it must end with a semicolon",
        ),
        ((*TOKENS, "sasl.oauthbearer.token.endpoint.url=file:///t"), "not an address that"),
    ],
)
def test_an_unusable_property_is_reported_with_key_and_file(
    stores: Stores, lines: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        stores.read(*lines)
    assert str(stores.folder / "client.properties") in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_damaged_certificate_is_reported(stores: Stores) -> None:
    text = "".join(stores.ca.read_text().split("\n")).replace("MII", "MIJ", 1)
    begin = "line 2: ssl.truststore.certificates: a trusted certificate is damaged"
    with pytest.raises(ConfigError, match=begin):
        stores.read(*SSL, f"ssl.truststore.certificates={text}")


def test_a_key_that_does_not_match_its_certificate_is_reported(stores: Stores) -> None:
    other = Authority.make("other").issue(stores.folder / "other.pem", "alice")
    with pytest.raises(ConfigError, match="damaged, or belongs to another certificate"):
        stores.read(*SSL, "ssl.certificate.location={client}", f"ssl.key.location={other}")


def test_no_secret_is_in_a_repr(stores: Stores) -> None:
    properties = stores.read(
        *SASL_SSL, LOGIN, "ssl.keystore.location={locked}", f"ssl.key.password={SECRET}"
    )
    tokens = TokenSource(url="u", client_id="c", client_secret=SECRET)
    shown = repr(Connection("a:1", client=properties)) + repr(tokens)
    assert "alice" in shown
    assert SECRET not in shown
    assert "PRIVATE KEY" not in shown
