"""The values plimsoll works with, their files, and the independent evaluator."""

__version__ = "0.1.0"
