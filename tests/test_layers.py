"""What static contracts cannot see: deferred imports, and who owns our names."""

import subprocess
import sys
from importlib.metadata import packages_distributions

import pytest

PACKAGES = [
    "model",
    "clients",
    "solver",
    "collector",
    "executor",
    "lab",
    "control",
    "tui",
]


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("model", {"textual", "pyspark", "ortools", "kafka"}),
        ("solver.solve", {"textual", "pyspark", "kafka"}),
        ("executor.executor", {"textual", "pyspark", "ortools"}),
        ("collector.collector", {"textual", "pyspark", "ortools"}),
        ("control.loop.loop", {"textual", "pyspark", "ortools", "kafka"}),
        (
            "control.cli.main",
            {"textual", "pyspark", "ortools", "kafka", "numpy", "pydantic", "rich"},
        ),
    ],
)
def test_a_module_loads_nothing_heavy_that_it_does_not_need(
    module: str, heavy: set[str]
) -> None:
    code = f"import {module}, sys; print(*({heavy!r} & {{*sys.modules}}))"
    run = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, check=True, text=True
    )
    assert run.stdout.split() == []


@pytest.mark.parametrize("name", PACKAGES)
def test_no_other_distribution_owns_our_import_names(name: str) -> None:
    assert set(packages_distributions().get(name, ())) <= {"kafka-plimsoll"}
