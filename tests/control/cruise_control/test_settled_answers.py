"""Endpoints that change nothing here: what is so already succeeds, all else is refused by 403."""

import pytest

from control.cruise_control.anomalies import AnomalyKind
from control.cruise_control.requests import ENDPOINTS
from tests.support.control.cruise_bench import CruiseClient
from tests.support.control.cruise_schema import check


@pytest.mark.parametrize(
    ("method", "path", "file", "name"),
    [
        ("GET", "bootstrap?start=1&clearmetrics=true", "bootstrapResult", "BootstrapResult"),
        ("GET", "train?start=1&end=2", "trainResult", "TrainResult"),
        ("POST", "resume_sampling?reason=x", "resumeSamplingResult", "ResumeSamplingResult"),
    ],
)
def test_requests_that_need_nothing_succeed(
    client: CruiseClient, method: str, path: str, file: str, name: str
) -> None:
    reply = client.ask(method, f"/kafkacruisecontrol/{path}&json=true")
    assert reply.status == 200
    check(reply.json, file, name)
    assert reply.json["message"].endswith(".")
    text = client.ask(method, f"/kafkacruisecontrol/{path}")
    assert text.text == f"message: {reply.json['message']}\n"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("pause_sampling?", "plimsoll always measures; use plimsoll ctl pause"),
        ("rightsize?num_brokers_to_add=1&", "plimsoll has no provisioner"),
        ("admin?concurrent_leader_movements=9&", "concurrent_leader_movements: concurrency is"),
        (
            "admin?drop_recently_removed_brokers=1,2&",
            "drop_recently_removed_brokers: brokers are left out",
        ),
        (
            "admin?disable_concurrency_adjuster_for=LEADERSHIP&",
            "disable_concurrency_adjuster_for: concurrency is that of the limits",
        ),
        ("admin?enable_self_healing_for=goal_violation&", "self-healing of GOAL_VIOLATION follows"),
    ],
)
def test_requests_that_change_settings_are_refused_with_the_reason(
    client: CruiseClient, path: str, words: str
) -> None:
    reply = client.post(f"{path}json=true")
    assert reply.status == 403
    check(reply.json, "errorResponse", "ErrorResponse")
    assert f"KafkaCruiseControlException: {words}" in reply.error


def test_self_healing_that_is_off_already_stays_off(client: CruiseClient) -> None:
    # As cccli sends it.
    reply = client.post("admin?disable_self_healing_for=goal_violation,broker_failure&json=true")
    assert reply.status == 200
    check(reply.json, "adminResult", "AdminResult")
    off = {"GOAL_VIOLATION": False, "BROKER_FAILURE": False}
    assert reply.json["selfHealingEnabledBefore"] == reply.json["selfHealingEnabledAfter"] == off
    assert client.post("admin?json=true").json == {"version": 1}


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("enable_self_healing_for=x", "unknown anomaly 'X'; there are GOAL_VIOLATION"),
        ("enable_self_healing_for=", "enable_self_healing_for is empty"),
        (
            "enable_self_healing_for=disk_failure&disable_self_healing_for=disk_failure",
            "DISK_FAILURE is to be both enabled and disabled",
        ),
        ("concurrent_leader_movements=many", "concurrent_leader_movements is a whole number"),
        ("drop_recently_removed_brokers=-1", "drop_recently_removed_brokers is not below 0"),
        ("throttle=1", "Unrecognized endpoint parameters in ADMIN POST request: [throttle]"),
    ],
)
def test_bad_parameters_are_400(client: CruiseClient, query: str, words: str) -> None:
    reply = client.post(f"admin?json=true&{query}")
    assert (reply.status, words in reply.error) == (400, True)
    assert {kind.value for kind in AnomalyKind} >= {"GOAL_VIOLATION", "DISK_FAILURE"}


def test_without_logins_every_client_is_an_admin(client: CruiseClient) -> None:
    reply = client.get("permissions?json=true")
    check(reply.json, "userPermissions", "UserPermissions")
    assert reply.json["roles"] == ["ADMIN"]


def test_no_endpoint_answers_500_for_what_it_does_not_know(client: CruiseClient) -> None:
    for name, endpoint in ENDPOINTS.items():
        reply = client.ask(endpoint.method, f"/kafkacruisecontrol/{name}?json=true&nothing=1")
        assert reply.status == 400, name
        assert "Unrecognized endpoint parameters" in reply.error
