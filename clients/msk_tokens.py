"""Tokens for Amazon MSK with IAM (AWS_MSK_IAM), signed by AWS' own library.

Clients other than Java's log in to MSK with them by SASL OAUTHBEARER.
"""

import os
import re
import threading
import time
from collections.abc import Callable
from typing import Final

from clients.connection import Connection, MskIam
from clients.tokens import Token
from model.errors import AccessRefused, ConfigError

_FRESH: Final = 0.8
"""A token is replaced after this share of its lifetime."""
_HOST: Final = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?$")
_REGIONS: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")


class MskTokens:
    """One cached token, signed when it is needed; from any thread."""

    def __init__(
        self, source: MskIam, connection: Connection, clock: Callable[[], float] = time.time
    ) -> None:
        """clock: seconds since the epoch.

        Raises ConfigError where the cluster's region is unknown.
        """
        self._source, self._clock = source, clock
        self._region = region_of(connection)
        self._token: Token | None = None
        self._lock = threading.Lock()

    def current(self) -> Token:
        """Return a token with at least a fifth of its lifetime left.

        Raises ConfigError where the library is missing, AccessRefused where no credentials are
        found, or the role cannot be assumed.
        """
        with self._lock:
            token, now_s = self._token, self._clock()
            if token is None or now_s >= token.replaced_at_s:
                text, ends_at_ms = self._sign()
                ends_at_s = ends_at_ms / 1000
                token = self._token = Token(
                    text, now_s + _FRESH * max(0.0, ends_at_s - now_s), ends_at_s
                )
            return token

    def _sign(self) -> tuple[str, float]:
        source = self._source
        try:
            # An extra; importing it takes 0.2 s.
            from aws_msk_iam_sasl_signer import MSKAuthTokenProvider as Signer
        except ImportError as exc:
            raise ConfigError(
                "sasl.mechanism AWS_MSK_IAM needs AWS' library aws-msk-iam-sasl-signer-python; "
                "install plimsoll with the extra msk, as in kafka-plimsoll[msk]"
            ) from exc
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            if source.role_arn is not None:
                session = (source.role_session,) if source.role_session else ()
                found = Signer.generate_auth_token_from_role_arn(
                    self._region, source.role_arn, *session
                )
            elif source.profile is not None:
                found = Signer.generate_auth_token_from_profile(self._region, source.profile)
            else:
                found = Signer.generate_auth_token(self._region)
        # Without any credentials, the library fails with an AttributeError.
        except (BotoCoreError, ClientError, ValueError, AttributeError) as exc:
            reason = "none were found" if isinstance(exc, AttributeError) else exc
            raise AccessRefused(
                f"AWS gave no credentials for MSK ({reason}). Check the profile or role of "
                "sasl.jaas.config, and the credentials in AWS' usual places."
            ) from exc
        text, ends_at_ms = found
        return str(text), float(ends_at_ms)


def region_of(connection: Connection) -> str:
    """The region of the cluster, from its addresses or the environment.

    Raises ConfigError where neither has it.
    """
    for host, _ in connection.addresses:
        if found := _HOST.search(host.lower()):
            return found[1]
    for name in _REGIONS:
        if given := os.environ.get(name):
            return given
    raise ConfigError(
        "the region of the cluster is unknown: its bootstrap servers are not named by MSK; set "
        "AWS_REGION"
    )
