"""Types of sizes, rates and time spans in settings and goals: a number, or `50MiB`."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field

from model.units import bytes_of, rate_of, span_of

_INPUT: Final = Annotated[float, Field(ge=0)] | str


def _reads(read: Callable[[str], float]) -> BeforeValidator:
    """Read texts with units, and take whole numbers such as `5e7` for integers."""

    def convert(value: Any) -> Any:
        found = read(value) if isinstance(value, str) else value
        whole = isinstance(found, float) and found.is_integer()
        return int(found) if whole else found

    return BeforeValidator(convert, json_schema_input_type=_INPUT)


as_size: Final = _reads(partial(bytes_of, least=0))
"""For other bounds: `Annotated[int, Field(gt=0), as_size]`, in this order."""
as_rate: Final = _reads(rate_of)
as_span: Final = _reads(partial(span_of, least=0))

ByteSize = Annotated[int, Field(ge=0, le=10**18), as_size]
"""Bytes: 52428800, `50MB` (50 * 10^6) or `50MiB` (50 * 2^20)."""

Rate = Annotated[int, Field(ge=1, lt=10**15), as_rate]
"""Bytes per second: 50000000, `50MB/s` or `50MiB/s`."""

Duration = Annotated[float, Field(ge=0, lt=10**9), as_span]
"""Seconds: 5400, `5400s`, `90m` or `1h30m`."""
