"""Pages of metrics: authentication, and errors if they cannot be read."""

import base64
import logging
import threading
from pathlib import Path

import pytest

from collector.reports.http import Access, MetricsClient
from lab.local_cluster.tcp_ports import free_ports
from model.errors import ConfigError, MetricsUnreachable
from tests.support.collector.http_pages import Page, pages
from tests.support.tls_certificates import Authority

PATH = "/metrics?secret=query"


def refusal(page: Page, access: Access | None = None) -> str:
    with pages(lambda _: page) as server:
        with pytest.raises(MetricsUnreachable) as caught:
            MetricsClient(access or Access()).get(server.url + PATH, "text/plain")
        message = str(caught.value)
        assert message.startswith(f"{server.url}/metrics ")
        assert "secret" not in message
        return message.removeprefix(f"{server.url}/metrics ")


def test_a_page_is_returned_unchanged() -> None:
    with pages(lambda path: Page(path.encode())) as server:
        assert MetricsClient(Access()).get(server.url + PATH, "text/plain") == PATH.encode()
        ((_, headers),) = server.asked
    assert headers["Accept"] == "text/plain"
    assert "Authorization" not in headers


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (401, "wants a login, or refuses the one it was given; check username and"),
        (403, "lets the user that was given not read (HTTP 403)"),
        (404, "has no such page; check the address (HTTP 404)"),
        (503, "did not answer (HTTP 503)"),
    ],
)
def test_a_refusal_is_reported_with_a_remedy(status: int, message: str) -> None:
    assert message in refusal(Page(b"<html>", status))


def test_an_error_of_prometheus_is_reported_with_its_text() -> None:
    content = b'{"status":"error","errorType":"timeout","error":"query timed out"}'
    message = refusal(Page(content, 503))
    assert message == "did not answer (HTTP 503: query timed out)."


def test_a_login_does_not_follow_a_redirect() -> None:
    with pages(lambda _: Page(b"1\n")) as elsewhere:
        away = Page(status=302, headers={"Location": f"{elsewhere.url}/"})
        assert "HTTP 302" in refusal(away, Access(token="hush"))
        assert elsewhere.asked == []


def test_a_refused_connection_is_reported() -> None:
    (port,) = free_ports(1)
    with pytest.raises(MetricsUnreachable, match="was not read: Connection refused"):
        MetricsClient(Access()).get(f"http://127.0.0.1:{port}/metrics", "text/plain")


def test_an_incomplete_answer_is_an_error() -> None:
    assert "broke off" in refusal(Page(b"a 1\n", promised_bytes=100))


def test_an_answer_in_drops_does_not_outlast_the_timeout() -> None:
    ended = threading.Event()
    slow = Page(bytes(1000), until=ended)
    try:
        assert "no answer in time" in refusal(slow, Access(timeout_s=0.3))
    finally:
        ended.set()


def test_a_silent_server_is_reported() -> None:
    ended = threading.Event()

    def wait(_: str) -> Page:
        ended.wait(300)
        return Page()

    with pages(wait) as server:
        with pytest.raises(MetricsUnreachable, match="no answer in time"):
            MetricsClient(Access(timeout_s=0.2)).get(server.url, "text/plain")
        ended.set()


def test_an_invalid_http_answer_is_reported() -> None:
    broken = Page(b"a 1\n", headers={"Transfer-Encoding": "chunked"})
    assert "was not read" in refusal(broken)


def login(access: Access) -> str:
    with pages(lambda _: Page()) as server:
        MetricsClient(access).get(server.url, "text/plain")
        ((_, headers),) = server.asked
        return headers["Authorization"]


def test_requests_carry_the_username_and_password_or_the_token(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("of-the-file\n")

    def basic(pair: str) -> str:
        return f"Basic {base64.b64encode(pair.encode()).decode()}"

    assert login(Access(username="me", password="hüsh")) == basic("me:hüsh")
    assert login(Access(username="me", password_file=file)) == basic("me:of-the-file")
    assert login(Access(token="abc")) == "Bearer abc"
    assert login(Access(token_file=file)) == "Bearer of-the-file"


def test_a_replaced_token_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old")
    with pages(lambda _: Page()) as server:
        web = MetricsClient(Access(token_file=file))
        file.write_text("new")
        web.get(server.url, "text/plain")
        assert server.asked[0][1]["Authorization"] == "Bearer new"
        file.unlink()
        with pytest.raises(MetricsUnreachable, match=f"secret in {file} cannot be"):
            web.get(server.url, "text/plain")


def test_secrets_appear_in_no_message_and_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for access in (Access(token="hush-hush"), Access(username="me", password="hush-hush")):
        assert "hush" not in repr(access)
        assert "hush" not in refusal(Page(status=401), access)
    assert "hush" not in caplog.text


@pytest.mark.parametrize("token", ["two\nlines", "hüsh", "bell\a"])
def test_a_token_that_does_not_fit_a_header_is_rejected_without_showing_it(token: str) -> None:
    with pytest.raises(ConfigError, match="token is not one line") as caught:
        MetricsClient(Access(token=token))
    assert token not in str(caught.value)


def test_an_unreadable_secret_or_authority_is_rejected(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    with pytest.raises(ConfigError, match=rf"secret in {nowhere} cannot be read \(No "):
        MetricsClient(Access(token_file=nowhere))
    with pytest.raises(ConfigError, match=f"authorities in {nowhere} cannot be used"):
        MetricsClient(Access(authorities=nowhere))
    nowhere.write_text("no certificate")
    with pytest.raises(ConfigError, match="ca_file is a PEM file of certificates"):
        MetricsClient(Access(authorities=nowhere))


def test_tls_trusts_only_the_given_authorities(tmp_path: Path) -> None:
    authority = Authority.make("test-ca")
    trusted = authority.write(tmp_path / "ca.pem")
    own = authority.issue(tmp_path / "own.pem", "prometheus")
    with pages(lambda _: Page(b"1\n"), certificate=own) as server:
        web = MetricsClient(Access(authorities=trusted))
        assert web.get(server.url, "text/plain") == b"1\n"
        with pytest.raises(MetricsUnreachable, match="certificate is not trusted"):
            MetricsClient(Access()).get(server.url, "text/plain")
