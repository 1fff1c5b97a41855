"""Memory that was freed goes back to the system."""

import ctypes


def give_back() -> None:
    """Give back what the C library keeps of it, where it does.

    glibc has heaps for threads of their own, such as solves and runs, and keeps the
    pages of what these have freed: a process that goes on for months grows.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
