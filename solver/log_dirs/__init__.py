"""Which log directory of its broker each replica lies in (JBOD).

Brokers are settled first. Then each broker is a problem of its own: replicas that
arrive get a directory, and those that stay change theirs where that pays.
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
