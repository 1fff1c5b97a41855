"""How the inner loops are compiled, and how they are handed their arrays."""

from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import types
from numba.experimental import structref
from numpy.typing import NDArray

F = TypeVar("F")

Array = NDArray[Any]
"""Columns of one type each, said where they are made: what is compiled is strict about
them."""


def compiled(function: F) -> F:
    """Compile at the first call, and keep the result on disk.

    Strict IEEE arithmetic: without `fastmath` nothing is reordered or fused, so that
    every processor gives the same bits. The interpreter's lock is released.
    """
    made = numba.njit(cache=True, nogil=True, error_model="numpy")
    return cast("F", made(cast("Any", function)))


class Reference(structref.StructRefProxy):
    """A record of arrays that compiled loops take as one pointer.

    A tuple of thirty arrays costs 0.6 us a call, since each array is counted; a
    reference costs 2 ns. In Python its arrays are read from the record it was made of.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(self.record, name)


def reference_to(kind: Any) -> tuple[type, type]:
    """The compiled type of a record, and the class of its references.

    They must stand in the record's module as `<record>Struct`, `<record>Reference`:
    the compiler's cache finds them by name.
    """

    def fields(_: Any, found: Any) -> Any:
        return tuple((name, unliteral(t)) for name, t in found)

    unliteral: Any = types.unliteral
    register: Any = structref.register
    define: Any = structref.define_proxy
    named = {"__module__": kind.__module__}
    struct = type(
        f"{kind.__name__}Struct",
        (types.StructRef,),
        {**named, "preprocess_fields": fields},
    )
    register(struct)
    made = type(f"{kind.__name__}Reference", (Reference,), named)
    define(made, struct, list(kind._fields))
    return struct, made


def linked(make: Any, record: F) -> F:
    """A reference to a record; `make` is the compiled constructor of its kind."""
    parts = tuple(
        np.require(part, requirements=["C", "W"])
        if isinstance(part, np.ndarray)
        else part
        for part in cast("Any", record)
    )
    found = make(parts)
    found.record = cast("Any", type(record))(*parts)
    return cast("F", found)
