"""The one translation of kafka-python's, confluent-kafka's and boto3's errors."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.error import URLError

from clients.connection import Connection
from model.errors import (
    AccessRefused,
    ArchiveUnreachable,
    ClusterUnreachable,
    ConfigError,
    PlimsollError,
    RightsMissing,
)

if TYPE_CHECKING:
    from botocore.exceptions import ClientError
    from confluent_kafka import KafkaError as ProduceError

_SASL_FAILED: Final = 58
"""Kafka's error code SASL_AUTHENTICATION_FAILED."""
_FORBIDDEN, _NOT_IMPLEMENTED = 403, 501
"""HTTP status codes of S3."""
_MISSING_RIGHTS: Final = {
    29: "READ, WRITE and DESCRIBE_CONFIGS on the topic {topic}",
    30: "READ on the group plimsoll",
    31: "IDEMPOTENT_WRITE on the cluster",
    53: "WRITE and DESCRIBE on the transactional ids that begin with {topic}",
}
"""What to grant for the error codes of Kafka that refuse a lease."""


def reason_of(exc: BaseException) -> str:
    """Return what a driver or the operating system reports, in one line."""
    if isinstance(exc, URLError):
        return exc.reason if isinstance(exc.reason, str) else reason_of(exc.reason)
    if isinstance(exc, TimeoutError):
        return "no answer in time"
    if isinstance(exc, OSError) and exc.strerror:
        return exc.strerror
    name = type(exc).__name__
    return str(exc).split("\n", 1)[0].removeprefix(f"{name}: ") or name


# ---- kafka-python


@contextmanager
def kafka_errors(bootstrap: str, what: str, right: str) -> Iterator[None]:
    """Raise plimsoll's errors in place of kafka-python's.

    Parameters
    ----------
    bootstrap
        The cluster's bootstrap servers, for the message.
    what
        The call, as in "refused to <what>".
    right
        The right that the call needs, such as `DESCRIBE on the cluster`.

    Raises
    ------
    RightsMissing
        A broker answered with an authorization error.
    ClusterUnreachable
        Any other error of the driver or of the network.
    """
    from kafka.errors import AuthorizationError, KafkaError

    try:
        yield
    except PlimsollError:
        raise
    except AuthorizationError as exc:
        raise rights_missing(bootstrap, what, right) from exc
    # The driver raises RuntimeError where it finds no controller.
    except (KafkaError, OSError, RuntimeError) as exc:
        raise ClusterUnreachable(
            f"The cluster at {bootstrap} did not {what} ({reason_of(exc)}). Check that "
            "its brokers run and can be reached."
        ) from exc


def rights_missing(bootstrap: str, what: str, right: str) -> RightsMissing:
    """Build the error for a refused call; parameters as of `kafka_errors`."""
    return RightsMissing(
        f"The cluster at {bootstrap} refused to {what}. Give plimsoll's user the right {right}."
    )


def access_refusal(error: Exception, connection: Connection) -> PlimsollError | None:
    """Return the error of a connection for which a retry is useless; else None.

    Such errors are a refused login and an untrusted certificate.
    """
    if isinstance(error, PlimsollError):
        return error
    where = f"The cluster at {connection.bootstrap}"
    if getattr(error, "errno", None) == _SASL_FAILED:
        return AccessRefused(
            f"{where} refused the login of {connection.client.login_name}. Check the "
            "user name, the password and sasl.mechanism."
        )
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return AccessRefused(
            f"{where} has a broker whose certificate is not trusted, or was not issued "
            f"for the address that the broker advertises ({error})."
        )
    return None


def failure_of(error: BaseException) -> str:
    """Return why one broker did not answer; raise `error` if it is not the broker's."""
    from kafka.errors import KafkaError

    if not isinstance(error, (KafkaError, OSError)):
        raise error
    return reason_of(error)


def is_unknown_broker(error: BaseException) -> bool:
    """Whether the client does not know the broker; it never learns of it later."""
    from kafka.errors import UnknownBrokerIdError

    return isinstance(error, UnknownBrokerIdError)


def is_unauthorized(code: int) -> bool:
    """Whether a Kafka error code is one of kafka-python's AuthorizationErrors."""
    from kafka.errors import AuthorizationError, for_code

    return issubclass(for_code(code), AuthorizationError)


def raise_unauthorized(codes: Iterable[int]) -> None:
    """Raise kafka-python's AuthorizationError if one of these error codes is such."""
    from kafka.errors import for_code

    for code in filter(is_unauthorized, codes):
        raise for_code(code)


def authorized(topics: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return described topics; raise AuthorizationError if one must not be seen.

    The driver describes such a topic as one without partitions.
    """
    raise_unauthorized(topic["error_code"] for topic in topics)
    return topics


# ---- confluent-kafka


def produce_failure(
    failed: "Sequence[ProduceError]", unanswered: int, bootstrap: str, topic: str
) -> PlimsollError:
    """Build the error for records that a producer could not write.

    failed: the errors of the records that were refused, the cause first. unanswered: number
    of records that were not acknowledged in time. bootstrap, topic: where they were to go.
    """
    if failed and _is_denied(failed[0]):
        return rights_missing(bootstrap, "keep samples", f"WRITE on the topic {topic}")
    return ClusterUnreachable(
        f"{len(failed) + unanswered} samples could not be written to the topic {topic} "
        f"({failed[0] if failed else 'no answer in time'}). Check that its brokers "
        "run, or remove samples_topic from the settings."
    )


def _is_denied(error: "ProduceError") -> bool:
    # A user who may not write anywhere gets no producer id either (KIP-679).
    return error.code() in (error.TOPIC_AUTHORIZATION_FAILED, error.CLUSTER_AUTHORIZATION_FAILED)


def is_fenced(error: "ProduceError") -> bool:
    """Whether a producer has ended, as where another one has initialised its transactional id."""
    return error.fatal() or error.code() in (
        error._FENCED,  # noqa: SLF001 - the driver's own names
        error._FATAL,  # noqa: SLF001
        error._PURGE_QUEUE,  # noqa: SLF001
        error.PRODUCER_FENCED,
        error.INVALID_PRODUCER_EPOCH,
    )


def is_end(error: "ProduceError") -> bool:
    """Whether a consumer has reached the end of a partition."""
    return error.code() == error._PARTITION_EOF  # noqa: SLF001


def has_lost_offset(error: "ProduceError") -> bool:
    """Whether a partition does not have the offset that a consumer is to read."""
    return error.code() in (error._AUTO_OFFSET_RESET, error.OFFSET_OUT_OF_RANGE)  # noqa: SLF001


def lease_topic_error(
    error: "ProduceError | None", what: str, bootstrap: str, topic: str
) -> PlimsollError:
    """Build the error for a lease in a topic; error: None where there was no answer in time.

    what: the call, as in "cannot <what>". bootstrap, topic: where the lease is.
    """
    if error is not None and error.code() in _MISSING_RIGHTS:
        return rights_missing(bootstrap, what, _MISSING_RIGHTS[error.code()].format(topic=topic))
    if error is not None and error.code() in (
        error.UNKNOWN_TOPIC_OR_PART,
        error._UNKNOWN_TOPIC,  # noqa: SLF001
        error._UNKNOWN_PARTITION,  # noqa: SLF001
    ):
        return ConfigError(
            f"Cannot {what}: the topic does not exist. Create it: kafka-topics.sh --create --topic "
            f"{topic} --partitions 1 --replication-factor 3 --config cleanup.policy=compact "
            "--config min.insync.replicas=2 --config segment.ms=600000"
        )
    reason = "no answer in time" if error is None else error.str()
    return ArchiveUnreachable(f"Cannot {what} at {bootstrap}: {reason}")


# ---- boto3


@contextmanager
def s3_errors(what: str) -> Iterator[None]:
    """Raise plimsoll's errors in place of boto3's; `what` completes "Cannot ...".

    Raises
    ------
    RightsMissing
        S3 answered with HTTP 403.
    ConfigError
        No such bucket, no credentials, or parameters that S3 does not accept.
    ArchiveUnreachable
        Any other failure.
    """
    from botocore.exceptions import (
        BotoCoreError,
        ClientError,
        NoCredentialsError,
        ParamValidationError,
    )

    try:
        yield
    except ClientError as exc:
        raise _s3_refusal(what, exc) from exc
    except (NoCredentialsError, ParamValidationError, ValueError) as exc:
        raise ConfigError(f"Cannot {what}: {' '.join(str(exc).split())}") from exc
    except BotoCoreError as exc:
        raise ArchiveUnreachable(f"Cannot {what}: {exc}") from exc


def s3_failures() -> tuple[type[Exception], ...]:
    """Return the exceptions that boto3's calls raise, an invalid endpoint included."""
    from botocore.exceptions import BotoCoreError, ClientError

    return BotoCoreError, ClientError, ValueError


def s3_code(exc: "ClientError") -> str:
    """Return S3's error code, such as `NoSuchKey`."""
    return str(exc.response["Error"].get("Code"))


def s3_status(exc: "ClientError") -> int:
    """Return the HTTP status of S3's answer."""
    return int(exc.response["ResponseMetadata"]["HTTPStatusCode"])


def _s3_refusal(what: str, exc: "ClientError") -> PlimsollError:
    message = f"Cannot {what}: {exc.response['Error'].get('Message', s3_code(exc))}"
    if s3_status(exc) == _FORBIDDEN:
        return RightsMissing(
            f"{message}. plimsoll's user needs s3:ListBucket on the bucket, "
            "s3:GetObject and s3:PutObject in it."
        )
    if s3_status(exc) == _NOT_IMPLEMENTED or s3_code(exc) == "NoSuchBucket":
        return ConfigError(message)
    return ArchiveUnreachable(message)
