"""The unit of CPU: cores everywhere, but in files and JSON percent of one core.

Files have had percent of one core since their first version (400 is four cores), and
keep it: plans keep their bytes and their hashes.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, SerializerFunctionWrapHandler, WrapSerializer
from pydantic_core.core_schema import ValidationInfo

PERCENT: Final = 100.0
"""Percent of one core in a core."""
_CPU: Final = "cpu"
_K = TypeVar("_K", bound=str)


def is_cpu(dimension: str) -> bool:
    """Whether a dimension is CPU, now (`cpu`) or in a slot (`cpu@tue-14`)."""
    return dimension.partition("@")[0] == _CPU


def from_file(dimension: str, value: float) -> float:
    """Convert a figure of a file: CPU from percent of one core to cores."""
    return value / PERCENT if is_cpu(dimension) else value


def to_file(dimension: str, value: float) -> float:
    """Convert a figure for a file: CPU from cores to percent of one core.

    With 15 digits, so that a file that was read is written again with the same bytes.
    """
    return float(f"{PERCENT * value:.15g}") if is_cpu(dimension) else value


def figures_to_file(figures: Mapping[_K, float]) -> dict[_K, float]:
    """Convert figures by dimension for a file or JSON: CPU from cores to percent of one core.

    Rounded as by `to_file`.
    """
    return {key: to_file(key, value) for key, value in figures.items()}


def columns_from_file(
    values: NDArray[np.float64], resources: tuple[str, ...]
) -> NDArray[np.float64]:
    """Convert (..., resources) loads of a file: CPU from percent of one core to cores.

    resources: names of the last axis, in order. NaN stays NaN; the result is a new float64 array.
    """
    return np.asarray(values / _percents(resources))


def columns_to_file(values: NDArray[np.float64], resources: tuple[str, ...]) -> NDArray[np.float64]:
    """Convert (..., resources) loads for a file: CPU from cores to percent of one core.

    resources: names of the last axis, in order. NaN stays NaN; figures are not rounded here.
    """
    return np.asarray(values * _percents(resources))


def _percents(resources: tuple[str, ...]) -> NDArray[np.float64]:
    return np.array([PERCENT if is_cpu(resource) else 1.0 for resource in resources])


def _read(value: Any, info: ValidationInfo) -> Any:
    if info.mode == "python" or not isinstance(value, dict):
        return value
    return {key: from_file(key, v) if isinstance(v, int | float) else v for key, v in value.items()}


def _written(value: Any, handler: SerializerFunctionWrapHandler) -> Any:
    return figures_to_file(handler(value))


in_cores: Final = BeforeValidator(_read), WrapSerializer(_written, when_used="json")
"""For a field with figures by resource: CPU in cores, in JSON percent of one core."""
Loads = Annotated[dict[str, float], *in_cores]
"""Loads by dimension: bytes/s, bytes, cores or requests/s."""
