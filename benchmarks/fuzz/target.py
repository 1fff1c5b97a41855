"""Fuzz one reader in this process: `python -P -m benchmarks.fuzz.target NAME FOLDER [OPTIONS]`.

The options are libFuzzer's. Coverage guides the input, as far as the reader is written in Python.
"""

import logging
import shlex
import sys
from pathlib import Path
from typing import Final

import atheris

PACKAGES: Final = ("model", "clients", "collector", "control", "executor")

with atheris.instrument_imports(include=[*PACKAGES]):
    from benchmarks.fuzz.budget import within_budget
    from benchmarks.fuzz.readers import ByteReader, readers


def main() -> None:
    """Fuzz until libFuzzer ends the process."""
    name, folder, *options = sys.argv[1:]
    logging.disable()
    reader = readers(Path(folder))[name]
    # libFuzzer starts itself again to merge corpora, by a shell and these words.
    again = (sys.executable, "-P", "-m", "benchmarks.fuzz.target", name, folder)
    atheris.Setup([shlex.join(again), *options], lambda data: _read(reader, data))
    atheris.Fuzz()


def _read(reader: ByteReader, data: bytes) -> None:
    within_budget(reader, data)


if __name__ == "__main__":
    main()
