"""Forms of stdout; by itself, so that the command line loads nothing heavy for it."""

from enum import StrEnum


class Form(StrEnum):
    """Form of what a command prints to stdout."""

    TABLE = "table"
    JSON = "json"
