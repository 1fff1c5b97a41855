"""Manifests, chart and image in `deploy`: valid for Kubernetes, confined, and in step."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from clients.kubernetes_leases import API
from control.settings.settings import load
from model import __version__
from tests.support.kube_apiserver import KubeApiserver
from tests.support.kubernetes_api import VERBS
from tests.support.paths import FIXTURES, ROOT

MANIFESTS = ROOT / "deploy" / "kubernetes" / "plimsoll.yaml"
CHART = ROOT / "deploy" / "helm" / "plimsoll"
STANDBY = ROOT / "deploy" / "kubernetes" / "standby.yaml"
CONTAINER = ROOT / "deploy" / "container"
VALUES = ["--set", "bootstrapServer=kafka:9093"]
EVERY_VALUE = """\
bootstrapServer: "[::1]:9093,b:9093"
clientSecret: kafka-client
options: [--auto, --limits, conservative, --allow-changes]
settings: |
  name = "prod"
  [goals]
  move_price = 2.0
standby: true
env: [{name: PLIMSOLL_TIMEOUT_S, value: "5"}]
secrets: [tls, logins]
imagePullSecrets: [{name: registry}]
image: {repository: registry.example/plimsoll, tag: "1"}
storage: {size: 1Gi, className: fast}
podLabels: {team: data}
podAnnotations: {a: b}
nodeSelector: {disk: ssd}
tolerations: [{key: a, operator: Exists}]
affinity: {nodeAffinity: {}}
priorityClassName: high
user: null
group: null
"""
needs_helm = pytest.mark.skipif(shutil.which("helm") is None, reason="needs helm")


def manifests() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(MANIFESTS.read_text()))


def of_kind(documents: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (found,) = [document for document in documents if document["kind"] == kind]
    return found


def schema_errors(document: dict[str, Any]) -> list[str]:
    """What Kubernetes would refuse; unknown keys are errors, too."""
    if document["apiVersion"].startswith("rbac."):
        return []  # `assert_least_rights` knows each of their keys
    known = json.loads((FIXTURES / "kubernetes" / "schemas.json").read_text())
    group = "apps" if document["apiVersion"] == "apps/v1" else "core"
    reference = f"#/$defs/io.k8s.api.{group}.v1.{document['kind']}"
    validator = Draft202012Validator({"$defs": known["$defs"], "$ref": reference})
    return [f"{list(error.path)}: {error.message}" for error in validator.iter_errors(document)]


def assert_least_rights(documents: list[dict[str, Any]], account: str, namespace: str) -> None:
    """The account may do with leases what plimsoll asks for, and nothing else."""
    role, binding = (of_kind(documents, kind) for kind in ("Role", "RoleBinding"))
    assert role.keys() == {"apiVersion", "kind", "metadata", "rules"}
    assert role["apiVersion"] == binding["apiVersion"] == "rbac.authorization.k8s.io/v1"
    (rule,) = role["rules"]
    assert rule == {
        "apiGroups": [API.partition("/")[0]],
        "resources": ["leases"],
        "verbs": [*VERBS.values()],
    }
    assert binding.keys() == {"apiVersion", "kind", "metadata", "roleRef", "subjects"}
    assert binding["roleRef"] == {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "Role",
        "name": role["metadata"]["name"],
    }
    # Kubernetes fills no namespace in.
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    ]


def assert_confined(stateful_set: dict[str, Any]) -> None:
    """It meets Kubernetes' restricted standard, and one volume alone can be written."""
    pod = stateful_set["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    writable = [m["mountPath"] for m in container["volumeMounts"] if not m.get("readOnly")]
    assert writable == ["/mnt/plimsoll"]
    (claim,) = stateful_set["spec"]["volumeClaimTemplates"]
    assert claim["metadata"]["name"] == "state"
    # A second pod acts, too, unless it stands by.
    assert stateful_set["spec"]["replicas"] == 1
    assert pod["automountServiceAccountToken"] is False


def assert_selected(documents: list[dict[str, Any]]) -> None:
    """The service and the set select the pods that the set makes."""
    stateful_set, service = (of_kind(documents, kind) for kind in ("StatefulSet", "Service"))
    labels = stateful_set["spec"]["template"]["metadata"]["labels"].items()
    for selector in (service["spec"]["selector"], stateful_set["spec"]["selector"]["matchLabels"]):
        assert selector.items() <= labels
    assert stateful_set["spec"]["serviceName"] == service["metadata"]["name"]
    (container,) = stateful_set["spec"]["template"]["spec"]["containers"]
    assert {p["targetPort"] for p in service["spec"]["ports"]} <= {
        p["name"] for p in container["ports"]
    }


def settings_of(documents: list[dict[str, Any]], folder: Path) -> Any:
    """The settings that the container would read."""
    file = folder / "plimsoll.toml"
    file.write_text(of_kind(documents, "ConfigMap")["data"]["plimsoll.toml"])
    return load({}, config=file)


def test_the_manifests_are_valid() -> None:
    kinds = [document["kind"] for document in manifests()]
    assert kinds == ["ServiceAccount", "ConfigMap", "Secret", "Service", "StatefulSet"]
    for document in manifests():
        assert schema_errors(document) == []


def test_a_second_pod_may_hold_the_lease_and_nothing_else() -> None:
    account = of_kind(manifests(), "ServiceAccount")["metadata"]["name"]
    assert_least_rights([*yaml.safe_load_all(STANDBY.read_text())], account, "kafka")


def test_a_real_api_server_accepts_the_manifests_and_their_pod(real_api: KubeApiserver) -> None:
    documents = [*manifests(), *yaml.safe_load_all(STANDBY.read_text())]
    for document in documents:
        assert real_api.check(document) == ""
    stateful_set = of_kind(documents, "StatefulSet")
    assert real_api.check(pod_of(stateful_set)) == ""
    # It would have found what it does not know, and a pod that is not confined.
    assert 'unknown field "spec.replica"' in real_api.check(
        stateful_set | {"spec": stateful_set["spec"] | {"replica": 1}}
    )
    pod = pod_of(stateful_set)
    pod["spec"]["containers"][0]["securityContext"] = {}
    assert "violates PodSecurity" in real_api.check(pod)


def pod_of(stateful_set: dict[str, Any]) -> dict[str, Any]:
    """The pod that a controller would make, with the name of the claim that it would make."""
    template = json.loads(json.dumps(stateful_set["spec"]["template"]))
    name = stateful_set["metadata"]["name"]
    for claim in stateful_set["spec"]["volumeClaimTemplates"]:
        volume = claim["metadata"]["name"]
        source = {"persistentVolumeClaim": {"claimName": f"{volume}-{name}-0"}}
        template["spec"]["volumes"].append({"name": volume} | source)
    about = template["metadata"] | {"name": f"{name}-0"}
    return {"apiVersion": "v1", "kind": "Pod", **template, "metadata": about}


def test_an_unknown_key_of_a_manifest_would_be_found() -> None:
    stateful_set = of_kind(manifests(), "StatefulSet")
    container = stateful_set["spec"]["template"]["spec"]["containers"][0]
    container["readonlyRootFilesystem"] = True
    container["ports"][0]["containerPort"] = "9645"
    assert len(schema_errors(stateful_set)) == 2


def test_the_manifests_are_confined_and_fit_together(tmp_path: Path) -> None:
    assert_confined(of_kind(manifests(), "StatefulSet"))
    assert_selected(manifests())
    settings = settings_of(manifests(), tmp_path)
    assert settings.bootstrap_server == "kafka-bootstrap:9093"
    assert str(settings.client_properties) == "/etc/plimsoll/client/client.properties"


def test_names_of_the_manifests_exist() -> None:
    pod = of_kind(manifests(), "StatefulSet")["spec"]["template"]["spec"]
    names = {(d["kind"], d["metadata"]["name"]) for d in manifests()}
    assert ("ServiceAccount", pod["serviceAccountName"]) in names
    for volume in pod["volumes"]:
        found = {("ConfigMap", v.get("name")) for v in [volume.get("configMap", {})]}
        found |= {("Secret", v.get("secretName")) for v in [volume.get("secret", {})]}
        assert found & names
    mounted = {mount["name"] for mount in pod["containers"][0]["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]} | {"state"}


def test_the_image_has_what_manifests_and_scripts_run() -> None:
    text = (CONTAINER / "Containerfile").read_text()
    for name in re.findall(r"deploy/container/(\S+)", text):
        if name != "Containerfile":
            assert (CONTAINER / name).stat().st_mode & 0o444 == 0o444, name
    (container,) = of_kind(manifests(), "StatefulSet")["spec"]["template"]["spec"]["containers"]
    program = container["livenessProbe"]["exec"]["command"][0]
    assert f"deploy/container/{program}" in text
    for path in CONTAINER.iterdir():
        if path.read_text().startswith("#!"):
            assert path.stat().st_mode & 0o111 == 0o111, path
    # A number, since runAsNonRoot cannot judge names.
    assert re.search(r"^USER [1-9]\d*:\d+$", text, re.MULTILINE)
    assert re.findall(r"^VOLUME (.*)$", text, re.MULTILINE) == ["/mnt/plimsoll"]


def test_the_chart_has_the_version_and_values_that_its_schema_describes() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["apiVersion"] == "v2"
    assert chart["appVersion"] == chart["version"] == __version__.partition(".dev")[0]
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    Draft202012Validator.check_schema(schema)
    assert {*values} == {*schema["properties"]} - {"global"}
    validator = Draft202012Validator(schema)
    # Only the address has no default.
    assert [[*error.path] for error in validator.iter_errors(values)] == [["bootstrapServer"]]
    for given in yaml.safe_load(EVERY_VALUE), {"bootstrapServer": "kafka:9093"}:
        assert [*validator.iter_errors(values | given)] == []
    for wrong in (
        *({"replicas": 2}, {"user": 0}, {"secrets": ["client"]}, {"options": "--auto"}),
        {"standby": True},
    ):
        assert [*validator.iter_errors(values | {"bootstrapServer": "kafka:9093"} | wrong)]


def test_templates_use_values_that_exist_and_all_of_them() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    text = "".join(path.read_text() for path in sorted((CHART / "templates").iterdir()))
    used = re.findall(r"\.Values\.(\w+)(?:\.(\w+))?", text)
    assert {first for first, _ in used} == {*values}
    for first, second in used:
        assert not second or second in values[first], (first, second)
    assert text.count("{{") == text.count("}}")


def helm(*options: str) -> subprocess.CompletedProcess[str]:
    """Render the chart."""
    return subprocess.run(
        ["helm", "template", "test", str(CHART), *options],
        capture_output=True,
        text=True,
        timeout=120,
    )


def rendered(*options: str) -> list[dict[str, Any]]:
    run = helm(*options)
    assert run.returncode == 0, run.stderr
    return [document for document in yaml.safe_load_all(run.stdout) if document]


@needs_helm
def test_helm_accepts_the_chart() -> None:
    run = subprocess.run(
        ["helm", "lint", "--strict", str(CHART), *VALUES],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stdout


@needs_helm
def test_the_rendered_chart_is_valid_and_makes_what_the_manifests_make(tmp_path: Path) -> None:
    documents = rendered(*VALUES, "--set", "clientSecret=plimsoll-client")
    for document in documents:
        assert schema_errors(document) == []
    ours, theirs = (of_kind(d, "StatefulSet") for d in (documents, manifests()))
    assert_confined(ours)
    assert_selected(documents)
    (container,), (expected,) = (
        found["spec"]["template"]["spec"]["containers"] for found in (ours, theirs)
    )
    for key in ("args", "env", "securityContext", "volumeMounts", "livenessProbe", "startupProbe"):
        assert container[key] == expected[key], key
    assert settings_of(documents, tmp_path).bootstrap_server == "kafka:9093"


@needs_helm
def test_a_chart_with_every_value_is_valid(tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(EVERY_VALUE)
    documents = rendered("--values", str(file))
    for document in documents:
        assert schema_errors(document) == []
    settings = settings_of(documents, tmp_path)
    assert (settings.bootstrap_server, settings.name) == ("[::1]:9093,b:9093", "prod")
    pod = of_kind(documents, "StatefulSet")["spec"]["template"]["spec"]
    assert "runAsUser" not in pod["securityContext"]
    mounts = {mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
    assert {"/etc/plimsoll/tls", "/etc/plimsoll/logins", "/etc/plimsoll/client"} <= mounts
    assert pod["containers"][0]["args"][:3] == ["service", "--log-format", "json"]
    assert_least_rights(documents, "test-plimsoll", "default")
    assert of_kind(documents, "StatefulSet")["spec"]["replicas"] == 2
    assert pod["automountServiceAccountToken"] is True
    environment = {entry["name"]: entry["value"] for entry in pod["containers"][0]["env"]}
    assert environment["PLIMSOLL_SERVICE__STANDBY_LEASE"] == "kubernetes"


@needs_helm
@pytest.mark.parametrize("name", [*yaml.safe_load(EVERY_VALUE)])
def test_a_chart_is_valid_with_each_value_alone_and_without_it(name: str, tmp_path: Path) -> None:
    values = yaml.safe_load(EVERY_VALUE)
    auto = {"options": values["options"]}
    needed = {"bootstrapServer": "kafka:9093"} | (auto if name == "standby" else {})
    others = {key: value for key, value in values.items() if key != name}
    others |= {"standby": False} if name == "options" else {}
    for given in ({name: values[name]} | needed, others | needed):
        file = tmp_path / "values.yaml"
        file.write_text(yaml.safe_dump(needed | given))
        documents = rendered("--values", str(file))
        for document in documents:
            assert schema_errors(document) == []
        assert_selected(documents)
        settings_of(documents, tmp_path)


@needs_helm
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "bootstrapServer"),
        ((*VALUES, "--set", "replicas=2"), "replicas"),
        ((*VALUES, "--set", "standby=true"), "options"),
        ((*VALUES, "--set", "service.port=0"), "port"),
    ],
)
def test_helm_refuses_values_that_cannot_work(options: tuple[str, ...], message: str) -> None:
    run = helm(*options)
    assert run.returncode != 0
    assert message in run.stderr
