"""Dependencies that static contracts cannot check."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

PACKAGES = ["model", "clients", "solver", "collector", "executor", "lab", "control", "tui"]


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("model", {"textual", "pyspark", "ortools", "kafka"}),
        ("solver.solve", {"textual", "pyspark", "kafka"}),
        ("executor.executor", {"textual", "pyspark", "ortools"}),
        ("collector.collector", {"textual", "pyspark", "ortools"}),
        ("control.loop.loop", {"textual", "pyspark", "ortools", "kafka"}),
        ("control.cli.task_work", {"textual", "pyspark", "ortools", "numba"}),
        (
            "control.cli.main",
            {"textual", "pyspark", "ortools", "kafka", "numpy", "pydantic", "rich"},
        ),
    ],
)
def test_a_module_loads_nothing_heavy_that_it_does_not_need(module: str, heavy: set[str]) -> None:
    code = f"import {module}, sys; print(*({heavy!r} & {{*sys.modules}}))"
    run = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, check=True, text=True
    )
    assert run.stdout.split() == []


@pytest.mark.parametrize("package", ["model", "solver"])
def test_no_http_in_the_pure_packages(package: str) -> None:
    # A contract could only forbid urllib as a whole, whose `parse` is pure.
    files = Path(__file__).parents[1].joinpath(package).rglob("*.py")
    result = [f for f in files if re.search(r"urllib\.(request|error)", f.read_text())]
    assert result == []


@pytest.mark.parametrize("name", PACKAGES)
def test_no_other_distribution_owns_our_import_names(name: str) -> None:
    assert set(packages_distributions().get(name, ())) <= {"kafka-plimsoll"}


ROOT = Path(__file__).parents[1]


def modules_of(package: str) -> dict[str, Path]:
    files = (ROOT / package).rglob("*.py")
    paths = {path: path.relative_to(ROOT).with_suffix("").parts for path in files}
    return {
        ".".join(parts[:-1] if parts[-1] == "__init__" else parts): path
        for path, parts in paths.items()
    }


def imported(source: str, known: set[str]) -> Iterator[str]:
    """The modules that a source imports, also inside functions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (n if n in known else node.module for n in names)


@cache
def imports_across_packages() -> set[tuple[str, str]]:
    """Each module that another package imports, and the importing module."""
    modules = {n: p for package in PACKAGES for n, p in modules_of(package).items()}
    return {
        (name, importer)
        for importer, path in modules.items()
        for name in imported(path.read_text(encoding="utf-8"), {*modules})
        if name in modules and name.partition(".")[0] != importer.partition(".")[0]
    }


def public(package: str) -> set[str]:
    names = import_module(package).PUBLIC
    # The package itself has the names of its own `__init__`, such as the version.
    return {package, *(f"{package}.{name}" for name in names)}


@pytest.mark.parametrize("package", PACKAGES)
def test_other_packages_import_public_modules_only(package: str) -> None:
    allowed = public(package)
    breaks = {
        f"{importer} imports {name}"
        for name, importer in imports_across_packages()
        if name.partition(".")[0] == package and name not in allowed
    }
    assert not breaks


@pytest.mark.parametrize("package", PACKAGES)
def test_public_modules_exist_and_are_imported(package: str) -> None:
    assert public(package) <= {*modules_of(package)}
    used = {name for name, _ in imports_across_packages()}
    assert public(package) - {package} <= used


def test_imports_inside_functions_count() -> None:
    source = "def f():\n    from a import b, c\n    import d.e\n"
    assert {*imported(source, {"a.b"})} == {"a.b", "a", "d.e"}


SHELLS = ("system", "popen", "getoutput", "getstatusoutput", "create_subprocess_shell")


@pytest.mark.parametrize("package", PACKAGES)
def test_no_shell_runs_anything(package: str) -> None:
    """Programs are started with lists of arguments."""
    for path in sorted((ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                assert name not in SHELLS, f"{path}:{node.lineno}"
                assert not any(k.arg == "shell" for k in node.keywords), f"{path}:{node.lineno}"
