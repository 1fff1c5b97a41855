"""Compilation of the inner loops by numba, and records of arrays they take by reference.

Small problems are planned without compiling anything: see `interpreted`.
"""

import gc
import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import numba
import numpy as np
from numba.core import event, types
from numba.experimental import structref
from numpy.typing import NDArray

F = TypeVar("F")

log = logging.getLogger("plimsoll.solver")

ONCE: Final = "compiling the planner's loops, once on this machine: up to a minute"
ALWAYS: Final = (
    "compiling the planner's loops takes up to a minute at every start, because no "
    "folder can be written to cache them; set NUMBA_CACHE_DIR to a writable folder"
)

Array = NDArray[Any]
"""Columns of one type each; the type is fixed where they are made, as compiled code requires."""


_MOST_THRESHOLD: Final = 2**31 - 1
"""The largest threshold of Python's garbage collection."""


class _Wait(event.Listener):
    """Logs once why a plan has to wait, when a loop must be compiled, and makes the wait shorter.

    Numba compiles under a lock, a loop while compiling the loop that calls it.
    """

    def __init__(self) -> None:
        self.cached = True
        self._announced = False
        self._depth = 0
        self._thresholds = (0, 0, 0)

    def on_start(self, _event: Any) -> None:
        """Log the wait at the first loop that is not in the cache on disk."""
        if not self._announced:
            self._announced = True
            log.warning(ONCE if self.cached else ALWAYS)
        if self._depth == 0:
            # An eighth of the time was spent looking for garbage among what numba keeps.
            self._thresholds = young, *older = gc.get_threshold()
            gc.set_threshold(min(100 * young, _MOST_THRESHOLD), *older)
        self._depth += 1

    def on_end(self, _event: Any) -> None:
        """Collect garbage as before."""
        self._depth -= 1
        if self._depth == 0:
            gc.set_threshold(*self._thresholds)


_wait = _Wait()
_register: Any = event.register
_register("numba:compile", _wait)


def sources_version() -> str:
    """Numba's version with a digest of the kernels' sources.

    A cached loop contains the loops it calls, and numba checks only its own file. Raises
    OSError if a source cannot be read.
    """
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return f"{numba.__version__} {digest.hexdigest()}"


_VERSION: Final = sources_version()

_config: Any = numba.config
if _config.CPU_NAME is None:
    # What is cached holds on other hosts, too; for the processor at hand, loops are no faster.
    _config.CPU_NAME, _config.CPU_FEATURES = "generic", ""

# Loops are not passed as arguments, so their wrappers for that are not compiled.
_compiler = cast("Any", numba.njit)(nogil=True, error_model="numpy", no_cfunc_wrapper=True)


class _CacheFile:
    """Where a loop is cached: where numba writes it, and beside its module.

    An image has loops there, in a folder that it may not write. A folder that the user names
    (`NUMBA_CACHE_DIR`) is used alone.
    """

    def __init__(self, own: Any, name: str) -> None:
        """own: numba's. name: what the names of its files begin with."""
        beside = str(Path(__file__).with_name("__pycache__"))
        self._own = own
        self._beside = type(own)(beside, name, own._source_stamp)  # noqa: SLF001  # no public way
        for file in (self._own, self._beside):
            file._version = _VERSION  # noqa: SLF001

    def load(self, key: Any) -> Any:
        """Return what is cached for a signature; None where nothing is."""
        found = self._own.load(key)
        return self._beside.load(key) if found is None and not _config.CACHE_DIR else found

    def save(self, key: Any, data: Any) -> None:
        """Cache what was compiled for a signature."""
        self._own.save(key, data)

    def flush(self) -> None:
        """Forget what is cached."""
        self._own.flush()


_interprets: ContextVar[bool] = ContextVar("interprets", default=False)


@contextmanager
def interpreted(wanted: bool) -> Iterator[None]:
    """Run loops in this thread as plain Python, or compiled; nestable.

    The results have the same bits. Python takes a few hundred times as long as a compiled loop,
    but the compiler takes up to a minute. Records linked inside must not be used outside, nor
    the other way round.
    """
    token = _interprets.set(wanted)
    try:
        # Random numbers wrap around, of which numpy would warn.
        with np.errstate(over="ignore") if wanted else nullcontext():
            yield
    finally:
        _interprets.reset(token)


class Loop:
    """A function that is compiled at its first call, or run by Python where that is asked for.

    Compiled loops call it compiled, whatever is asked for.
    """

    def __init__(self, dispatcher: Any) -> None:
        self.dispatcher = dispatcher
        """Numba's compiled variants of the function."""
        self.py_func = dispatcher.py_func
        """The function itself."""
        # By this attribute numba knows what to call from compiled code.
        self._numba_type_ = dispatcher._numba_type_

    def __call__(self, *args: Any) -> Any:
        """Call the function; other loops that it calls are run in the same way."""
        return (self.py_func if _interprets.get() else self.dispatcher)(*args)


def compiled(function: F) -> F:
    """Compile a function at its first call, and cache the result on disk if possible.

    Strict IEEE arithmetic: without `fastmath` nothing is reordered or fused, so every
    processor gives the same bits, and so does plain Python (`interpreted`). The interpreter's
    lock is released. Where neither the source folder nor the user's cache folder is writable,
    nothing is cached. Arguments are positional.
    """
    made: Any = _compiler(cast("Any", function))
    _ignore_literals(made)
    try:
        made.enable_caching()
    except RuntimeError:
        # Neither the source folder nor the user's cache folder is writable.
        _wait.cached = False
    else:
        cache = made._cache  # noqa: SLF001
        cache._cache_file = _CacheFile(cache._cache_file, cache._impl.filename_base)  # noqa: SLF001
    return cast("F", Loop(made))


def _ignore_literals(dispatcher: Any) -> None:
    """Compile a function once where other loops call it with constants.

    Numba compiles it again for each constant, but does not use its value.
    """
    resolve, unliteral = dispatcher.get_call_template, cast("Any", types.unliteral)

    def resolve_plain(args: Any, kws: Any) -> Any:
        return resolve(tuple(unliteral(a) for a in args), {k: unliteral(a) for k, a in kws.items()})

    dispatcher.get_call_template = resolve_plain


class Reference(structref.StructRefProxy):
    """A record of arrays that compiled loops take as one pointer.

    Passing a tuple of thirty arrays costs 0.6 us a call, since each array is reference-counted;
    a reference costs 2 ns. In Python, attributes are read from the original record.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(self.record, name)


def by_reference(kind: type[F]) -> type[F]:
    """Let compiled loops take records of a NamedTuple class by reference: see `linked`.

    The compiled type and the class of the references become attributes of the class, since
    the compiler's cache finds them by name.
    """
    record: Any = kind
    unliteral: Any = types.unliteral
    register: Any = structref.register
    define: Any = structref.define_proxy

    def fields(_: Any, found: Any) -> Any:
        return tuple((name, unliteral(t)) for name, t in found)

    def nested(name: str, base: type, **members: Any) -> Any:
        named = {"__module__": kind.__module__, "__qualname__": f"{kind.__name__}.{name}"}
        return type(name, (base,), {**named, **members})

    record.Struct = nested("Struct", types.StructRef, preprocess_fields=fields)
    record.Reference = reference = nested("Reference", Reference)
    register(record.Struct)
    define(reference, record.Struct, list(record._fields))

    @compiled
    def make(parts: Any) -> Any:
        return reference(*parts)

    record.make = make
    return kind


def linked(record: F) -> F:
    """Create a reference to a record of a class decorated with `by_reference`.

    Arrays that are contiguous and writable are shared with the record, others copied. Where
    loops are `interpreted`, this is a record of the same class.
    """
    kind: Any = type(record)
    parts = tuple(
        np.require(part, requirements=["C", "W"]) if isinstance(part, np.ndarray) else part
        for part in cast("Any", record)
    )
    plain = kind(*parts)
    if _interprets.get():
        return cast("F", plain)
    found = kind.make(parts)
    found.record = plain
    return cast("F", found)


def record_of(reference: F) -> F:
    """Return the record that a reference was made of by `linked`, with the same arrays."""
    return cast("F", getattr(reference, "record", reference))


def changed(reference: F, **parts: Array | float) -> F:
    """Create a reference to a copy of the record in which `parts` replace fields by name.

    The other arrays are shared. Raises ValueError for a name that is not a field.
    """
    return cast("F", linked(cast("Any", record_of(reference))._replace(**parts)))


def twin(reference: F) -> F:
    """Create another reference to the same arrays, for another thread.

    Loops count their references to an array, and threads that count at the same address
    wait for each other: two threads took three times as long as one.
    """
    return changed(reference)
