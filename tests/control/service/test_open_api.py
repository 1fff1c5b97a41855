"""The OpenAPI description: it has every path of the port, and no other."""

import json
import re
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest
from prometheus_client import CollectorRegistry

from control.service.control_api import ControlApi
from control.service.http_listener import application
from control.service.logins import Role
from control.service.open_api import API, ROUTES, description, published
from control.service.operator_actions import Action
from control.service.read_api import ReadApi
from control.service.service_state import ServiceState
from tests.control.service.test_control_socket import FakeActions

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"
BOTH = pytest.mark.parametrize(
    ("fleet", "page", "schemas"),
    [(False, "openapi.json", 9), (True, "openapi-fleet.json", 10)],
    ids=["service", "fleet"],
)


def served(folder: Path) -> dict[tuple[str, str], re.Pattern[str]]:
    """The method and path of all that the port serves with logins, as patterns."""
    state = ServiceState()
    reads, control = ReadApi(state), ControlApi(state, FakeActions(folder, state))
    try:
        app = application(state, CollectorRegistry(), reads)
        control.add_reads_to(app, API)
        control.add_actions_to(app, API)
    finally:
        reads.close()
        control.close()
    found = {}
    for route in app.router.routes():
        if route.resource is not None and route.method != "HEAD":
            path = route.resource.canonical
            pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path))
            found[route.method.lower(), path] = re.compile(pattern)
    return found


def test_every_path_of_the_port_is_described(tmp_path: Path) -> None:
    known = served(tmp_path)
    described = [(route.method, route.path) for route in ROUTES]
    assert len({*described}) == len(described)
    for method, path in described:
        assert any(m == method and p.fullmatch(path) for (m, _), p in known.items()), path
    for (method, path), pattern in known.items():
        assert any(m == method and pattern.fullmatch(p) for m, p in described), path
    begin = f"{API}/actions/"
    actions = {path.removeprefix(begin) for _, path in described if path.startswith(begin)}
    assert actions == set(Action)


@BOTH
def test_references_are_defined_and_schemas_are_valid(fleet: bool, page: str, schemas: int) -> None:
    del page, schemas
    document = description(fleet=fleet)
    text = json.dumps(document)
    referred = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    assert referred == document["components"]["schemas"].keys()
    assert "$defs" not in text
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


@BOTH
def test_the_page_refers_to_the_published_schemas(fleet: bool, page: str, schemas: int) -> None:
    found = json.loads((REFERENCE / page).read_text())
    assert found == published(fleet=fleet)
    assert found["paths"].keys() == description(fleet=fleet)["paths"].keys()
    referred = set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(found)))
    own = {ref for ref in referred if ref.startswith("#")}
    assert {ref.rpartition("/")[2] for ref in own} == {
        "ActionParameters",
        "CancelParameters",
        "Operation",
        "SimulateParameters",
        "TaskParameters",
    }
    assert len(referred - own) == schemas
    names = [o["operationId"] for path in found["paths"].values() for o in path.values()]
    assert len({*names}) == len(names)
    for ref in referred - own:
        assert (REFERENCE / ref).is_file()


@pytest.mark.parametrize(
    ("path", "method", "role"),
    [("/metrics", "get", Role.VIEWER), (f"{API}/audit", "get", Role.ADMIN)]
    + [(f"{API}/tasks", "get", Role.VIEWER), (f"{API}/tasks", "post", Role.OPERATOR)]
    + [(f"{API}/simulate", "post", Role.OPERATOR)]
    + [(f"{API}/actions/{action}", "post", Role.OPERATOR) for action in Action],
)
def test_roles_are_named(path: str, method: str, role: Role) -> None:
    assert f"the role `{role}`" in description()["paths"][path][method]["description"]
