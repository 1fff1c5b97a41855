"""Brokers whose clients need TLS, a login and rights."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_SASL: Final = "listener.name.sasl_ssl"
_TOKENS: Final = f"{_SASL}.oauthbearer"
_SECURITY: Final = "org.apache.kafka.common.security"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSecurity:
    """Certificates, passwords and keys of brokers and their clients."""

    keystore: Path
    """The brokers' private key and certificates, as PEM."""
    truststore: Path
    """Authorities of client certificates, which the listener SSL requires; as PEM."""
    users: Mapping[str, str] = field(repr=False)
    """Passwords by user, for SASL PLAIN. SCRAM users are created once it runs."""
    key_set: Path
    """Keys that sign accepted tokens, for SASL OAUTHBEARER; a JWKS (RFC 7517)."""

    @property
    def properties(self) -> dict[str, str]:
        """Properties of every broker, without the ports of its listeners.

        Connections on INNER and between controllers are ANONYMOUS, a super user.
        """
        mechanisms = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"
        users = " ".join(f'user_{name}="{word}"' for name, word in self.users.items())
        return {
            "authorizer.class.name": ("org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
            "super.users": "User:ANONYMOUS",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.keystore),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.truststore),
            "listener.name.ssl.ssl.client.auth": "required",
            f"{_SASL}.sasl.enabled.mechanisms": mechanisms,
            f"{_SASL}.plain.sasl.jaas.config": (
                f"{_SECURITY}.plain.PlainLoginModule required {users};"
            ),
            **{
                f"{_SASL}.scram-sha-{bits}.sasl.jaas.config": (
                    f"{_SECURITY}.scram.ScramLoginModule required;"
                )
                for bits in (256, 512)
            },
            f"{_TOKENS}.sasl.jaas.config": (
                f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule required;"
            ),
            f"{_TOKENS}.sasl.server.callback.handler.class": (
                f"{_SECURITY}.oauthbearer.OAuthBearerValidatorCallbackHandler"
            ),
            f"{_TOKENS}.sasl.oauthbearer.jwks.endpoint.url": self.key_set.as_uri(),
        }

    @property
    def jvm_flags(self) -> tuple[str, ...]:
        """JVM flags of every broker: URLs of keys must be allowed here, too."""
        return (f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.key_set.as_uri()}",)
