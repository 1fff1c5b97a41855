"""Which log directory of its broker each replica lies in (JBOD).

Brokers are settled first. Then each broker is a problem of its own: replicas that
arrive get a directory, and those that stay change theirs where that pays.
"""

from solver.log_dirs.balance import (
    Directories,
    DirectoryUse,
    keep_directories,
    level_directories,
    work_aside,
)

__all__ = [
    "Directories",
    "DirectoryUse",
    "keep_directories",
    "level_directories",
    "work_aside",
]
