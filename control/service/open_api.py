"""The OpenAPI description of the HTTP listener, made of its table of routes and the answers' types.

OpenAPI 3.1, whose schemas are JSON Schema 2020-12.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from pydantic import BaseModel

from control.cli.output_types import (
    ANSWERS,
    ActionAnswer,
    AuditAnswer,
    CtlStatusAnswer,
    FleetAnswer,
    PlanAnswer,
    SimulateAnswer,
    StatusAnswer,
    TaskAnswer,
    TasksAnswer,
    WhyAnswer,
)
from control.service.logins import Role
from control.service.operator_actions import Action, ActionParameters
from control.service.simulations import SimulateParameters
from control.service.task_requests import CancelParameters, TaskParameters
from model.exchange.json_schemas import schema_of

API: Final = "/api/v1"
OPEN_API: Final = "/openapi.json"
CLUSTERS: Final = "/clusters"
"""What the paths of a fleet's clusters begin with, before their names."""
REASON: Final = "One sentence on why."
ERRORS: Final = {
    "202": "Still being computed; ask again.",
    "400": "The parameters or the body are not valid, or name what does not exist.",
    "401": "Log in with a name and password, or a bearer token.",
    "403": "The role of the login does not suffice.",
    "404": "There is no such path, cluster, task or result, or `api` in `[service]` is off.",
    "409": "The service refuses: the header `Plimsoll-Error` names the class of the error.",
    "413": "The body is too large, or there must be none.",
    "415": "The body is not JSON.",
    "429": "Too many requests, or wrong logins.",
    "503": "Not known yet, or too busy.",
}
"""What other statuses mean; the answer is one sentence in plain text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One path and method."""

    path: str
    summary: str
    method: str = "get"
    answer: type[BaseModel] | None = None
    """Of JSON; None for text."""
    needs: Role | None = Role.VIEWER
    """The role that it needs where there are logins; None for probes."""
    body: type[BaseModel] | None = None
    query: Mapping[str, Mapping[str, Any]] | None = None
    """Schemas of parameters, by name."""
    errors: Sequence[str] = ("401", "403", "429")
    status: str = "200"
    """Of success."""
    name: str = ""
    """Its id; by default the last part of the path."""


_READS: Final = ("400", "401", "403", "404", "429", "503")
_ACTS: Final = ("400", "401", "403", "404", "409", "413", "415", "429", "503")
_WORDS: Final = {
    Action.PAUSE: "Start no run, and no move of a run in progress.",
    Action.RESUME: "End a pause.",
    Action.STOP: "End the run in progress after its in-flight moves, and pause.",
    Action.ABORT: "End the run in progress, cancel its in-flight moves, and pause.",
    Action.THROTTLE: "Change the throttle of the run in progress to `rate`.",
    Action.APPROVE: "Release the waiting plan.",
    Action.REJECT: "Withdraw the waiting plan, and do not ask for it again.",
}
ROUTES: Final = (
    Route(path="/livez", summary="Whether the loop turns.", needs=None, errors=("429", "503")),
    Route(path="/readyz", summary="Whether loads are known.", needs=None, errors=("429", "503")),
    Route(path="/metrics", summary="All metrics, in the format of Prometheus or as OpenMetrics."),
    Route(path=OPEN_API, summary="This description.", answer=BaseModel),
    Route(
        path=f"{API}/status",
        summary="Brokers, loads and deviations, as `status -o json` prints them.",
        answer=StatusAnswer,
        query={"partitions": {"type": "boolean", "default": True}},
        errors=_READS,
    ),
    Route(
        path=f"{API}/plan",
        summary="The result of the newest solve, as `plan -o json` prints it.",
        answer=PlanAnswer,
        errors=_READS,
    ),
    Route(
        path=f"{API}/why",
        summary="The newest decisions of `--auto`, as `why -o json` prints them.",
        answer=WhyAnswer,
        query={"last": {"type": "integer", "minimum": 1, "maximum": 9999, "default": 1}},
        errors=_READS,
    ),
    Route(
        path=f"{API}/service",
        summary="What the service does, as `ctl status -o json` prints it; needs logins.",
        answer=CtlStatusAnswer,
        errors=("400", "401", "403", "404", "429"),
    ),
    Route(
        path=f"{API}/audit",
        summary="Who did what, when, and how it ended; needs logins.",
        answer=AuditAnswer,
        needs=Role.ADMIN,
        errors=("400", "401", "403", "404", "429"),
    ),
    Route(
        path=f"{API}/tasks",
        summary="The open tasks on brokers, or all, as `task list -o json` prints them.",
        answer=TasksAnswer,
        query={"all": {"type": "boolean", "default": False}},
        errors=_READS,
    ),
    Route(
        path=f"{API}/tasks/{{task}}",
        summary="One task, by its id or its beginning, as `task show -o json` prints it.",
        answer=TaskAnswer,
        errors=_READS,
        name="task",
    ),
    Route(
        path=f"{API}/tasks",
        method="post",
        summary="Request a task, and approve its plans; it is worked on at once. Needs logins.",
        answer=TaskAnswer,
        needs=Role.OPERATOR,
        body=TaskParameters,
        errors=_ACTS,
        name="request_task",
    ),
    Route(
        path=f"{API}/tasks/{{task}}/cancel",
        method="post",
        summary="Cancel an open task; its run stops after its in-flight moves. Needs logins.",
        answer=TaskAnswer,
        needs=Role.OPERATOR,
        body=CancelParameters,
        errors=_ACTS,
        name="cancel_task",
    ),
    Route(
        path=f"{API}/simulate",
        summary="The result of the newest simulation, as `simulate -o json` prints it.",
        answer=SimulateAnswer,
        errors=("202", "400", "401", "403", "404", "409", "429"),
        name="simulation",
    ),
    Route(
        path=f"{API}/simulate",
        method="post",
        summary="Begin to simulate policies on the cluster as it is now; one at a time, and for at "
        "most ten minutes. Needs logins.",
        answer=ActionAnswer,
        needs=Role.OPERATOR,
        body=SimulateParameters,
        errors=_ACTS,
        status="202",
    ),
    *(
        Route(
            path=f"{API}/actions/{action}",
            method="post",
            summary=f"{words} Needs logins.",
            answer=ActionAnswer,
            needs=Role.OPERATOR,
            body=ActionParameters,
            errors=_ACTS,
        )
        for action, words in _WORDS.items()
    ),
)
"""All that the port serves; a test compares them with the paths that the server knows."""
FLEET_ROUTES: Final = (
    Route(
        path="/livez",
        summary="Whether the loop of any cluster turns.",
        needs=None,
        errors=("429", "503"),
        name="fleet_livez",
    ),
    Route(
        path="/readyz",
        summary="Whether the loads of any cluster are known.",
        needs=None,
        errors=("429", "503"),
        name="fleet_readyz",
    ),
    Route(
        path="/metrics",
        summary="The metrics of all clusters, with the label `cluster`.",
        name="fleet_metrics",
    ),
    Route(path=OPEN_API, summary="This description.", answer=BaseModel),
    Route(
        path=f"{API}/fleet",
        summary="All clusters, as `fleet -o json` prints them.",
        answer=FleetAnswer,
        errors=("401", "403", "404", "429"),
    ),
    *(
        replace(
            route,
            path=f"{CLUSTERS}/{{cluster}}{route.path}",
            errors=tuple(sorted({*route.errors, "404"})),
        )
        for route in ROUTES
        if route.path != OPEN_API
    ),
)
"""All that the port of a fleet serves."""


@cache
def description(*, fleet: bool = False) -> dict[str, Any]:
    """The document of a service, or of a fleet's; callers must not change it."""
    schemas: dict[str, Any] = {}
    paths: dict[str, dict[str, Any]] = {}
    for route in FLEET_ROUTES if fleet else ROUTES:
        paths.setdefault(route.path, {})[route.method] = _operation(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "plimsoll",
            "version": "1",
            "description": "The service that balances Kafka clusters: state, plans and actions.",
        },
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
        },
    }


@cache
def published(*, fleet: bool = False) -> dict[str, Any]:
    """The same for the documentation: types of answers are the files in `docs/schemas`."""
    files = {model.__name__: f"../schemas/{kind}.json" for kind, model in ANSWERS.items()}
    whole = description(fleet=fleet)
    bodies = {route.body.__name__ for route in ROUTES if route.body is not None}
    known = whole["components"]["schemas"]
    schemas: dict[str, Any] = {}
    while bodies - {*schemas}:
        name = min(bodies - {*schemas})
        schemas[name] = known[name]
        # Such as the names of operations.
        bodies |= {*re.findall(rf"'{_COMPONENT}(\w+)'", str(known[name]))}
    schemas = dict(sorted(schemas.items()))
    return whole | {
        "paths": _in_files(whole["paths"], files),
        "components": whole["components"] | {"schemas": schemas},
    }


def _in_files(node: Any, files: Mapping[str, str]) -> Any:
    if isinstance(node, list):
        return [_in_files(each, files) for each in node]
    if isinstance(node, dict):
        return {key: _in_files(value, files) for key, value in node.items()}
    if isinstance(node, str) and node.startswith(_COMPONENT):
        return files.get(node.removeprefix(_COMPONENT), node)
    return node


def _operation(route: Route, schemas: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": route.name or route.path.rpartition("/")[2].removesuffix(".json"),
        "summary": route.summary,
        "responses": {route.status: _success(route, schemas)}
        | {
            status: {"description": ERRORS[status], "content": {"text/plain": _TEXT}}
            for status in route.errors
        },
        # Where there are no logins, none is needed.
        "security": [] if route.needs is None else [{}, {"basic": []}, {"bearer": []}],
    }
    if route.needs is not None:
        found["description"] = f"Where there are logins, it needs the role `{route.needs}`."
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)\}", route.path)
    ]
    parameters += [
        {"name": name, "in": "query", "schema": dict(schema)}
        for name, schema in (route.query or {}).items()
    ]
    if parameters:
        found["parameters"] = parameters
    if route.body is not None:
        content = {"application/json": {"schema": _schema(route.body, schemas)}}
        found["requestBody"] = {"required": True, "content": content}
    return found


_TEXT: Final = {"schema": {"type": "string"}}
_COMPONENT: Final = "#/components/schemas/"
_INNER: Final = "#/$defs/"
"""How a schema of its own refers to the types in it."""


def _success(route: Route, schemas: dict[str, Any]) -> dict[str, Any]:
    if route.answer is None:
        return {"description": "As text.", "content": {"text/plain": _TEXT}}
    schema = {"type": "object"}
    if route.answer is not BaseModel:
        schema = _schema(route.answer, schemas)
    return {"description": "As JSON.", "content": {"application/json": {"schema": schema}}}


def _schema(model: type[BaseModel], schemas: dict[str, Any]) -> dict[str, Any]:
    """A reference to the schema of a type, which is added with those that it refers to."""
    name = model.__name__
    schema = schema_of(name, {name: model})
    schema.pop("$schema")
    for inner, found in {name: schema, **schema.pop("$defs", {})}.items():
        if "$ref" not in found:
            schemas[inner] = _referring(found)
    return {"$ref": f"{_COMPONENT}{name}"}


def _referring(node: Any) -> Any:
    if isinstance(node, list):
        return [_referring(each) for each in node]
    if isinstance(node, dict):
        return {key: _referring(value) for key, value in node.items()}
    if isinstance(node, str) and node.startswith(_INNER):
        return f"{_COMPONENT}{node.removeprefix(_INNER)}"
    return node
