"""Tokens by client credentials, from a real HTTP server."""

import json
from collections.abc import Iterator

import pytest

from clients.connection import OPEN, TokenSource
from clients.tokens import Tokens
from lab.local_cluster.tcp_ports import free_ports
from model.errors import AccessRefused, ClusterUnreachable, ConfigError
from tests.support.oauth_server import TokenServer, token_server

SECRET = "hush-hush"


@pytest.fixture
def server() -> Iterator[TokenServer]:
    with token_server("plimsoll", SECRET) as started:
        yield started


class Clock:
    """A clock set by the test."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def tokens(url: str, secret: str = SECRET, clock: Clock | None = None) -> Tokens:
    source = TokenSource(url=url, client_id="plimsoll", client_secret=secret, scope="kafka")
    return Tokens(source, OPEN, 2.0, clock or Clock())


def test_a_token_is_requested_as_the_standard_specifies(server: TokenServer) -> None:
    token = tokens(server.url).current()
    assert server.forms == [{"grant_type": ["client_credentials"], "scope": ["kafka"]}]
    assert token.text.count(".") == 2
    assert token.ends_at_s == 4600.0
    assert token.text not in repr(token)


def test_a_token_is_reused_for_most_of_its_lifetime_and_then_replaced(server: TokenServer) -> None:
    clock = Clock()
    source = tokens(server.url, clock=clock)
    first = source.current()
    clock.now_s += 0.79 * 3600
    assert source.current() is first
    clock.now_s += 0.02 * 3600
    assert source.current() is not first
    assert len(server.forms) == 2


def test_without_a_lifetime_in_the_answer_the_expiry_in_the_token_counts(
    server: TokenServer,
) -> None:
    document = json.loads(server.granted())
    server.answer = json.dumps({"access_token": document["access_token"]}).encode()
    token = tokens(server.url).current()
    assert token.ends_at_s > 1e9


def test_the_error_about_a_wrong_secret_does_not_contain_it(server: TokenServer) -> None:
    message = r"/token refused a token to the client plimsoll \(HTTP 401\)\. Check its id"
    with pytest.raises(AccessRefused, match=message) as caught:
        tokens(server.url, "hush-wrong").current()
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    "answer",
    [
        *(b"<html>", b"[]", b"{}", b'{"access_token": "opaque"}', b"\xff"),
        # Such a token would never be replaced.
        b'{"access_token": "opaque", "expires_in": "inf"}',
        b'{"access_token": "opaque", "expires_in": "nan"}',
    ],
)
def test_an_invalid_token_is_reported(server: TokenServer, answer: bytes) -> None:
    server.answer = answer
    with pytest.raises(ConfigError, match="answered without an access_token"):
        tokens(server.url).current()


def test_an_unreachable_endpoint_is_reported_with_its_address() -> None:
    (port,) = free_ports(1)
    message = rf"from http://127.0.0.1:{port}/t \(Connection refused\)\. Check the address"
    with pytest.raises(ClusterUnreachable, match=message):
        tokens(f"http://127.0.0.1:{port}/t").current()
