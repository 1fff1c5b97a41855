"""The log directory of each replica on its broker (JBOD).

Brokers are chosen first. Then each broker is a problem of its own: arriving replicas
get a directory, and remaining ones change theirs where that pays.
"""

from solver.log_dirs.balance import (
    DirectoryAssignment,
    DirectoryUse,
    balance_directories,
    keep_directories,
    reserved_work,
)

__all__ = [
    "DirectoryAssignment",
    "DirectoryUse",
    "balance_directories",
    "keep_directories",
    "reserved_work",
]
