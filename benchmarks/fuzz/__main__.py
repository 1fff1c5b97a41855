"""Fuzzes every reader in turn: `python -P -m benchmarks.fuzz --minutes 10`.

Each begins with its first inputs, and with those in `fixtures/fuzz`. A failing input is printed
with the command that repeats it.
"""

import argparse
import logging
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable
from hashlib import sha1
from pathlib import Path
from typing import Final

from benchmarks.fuzz.budget import within_budget
from benchmarks.fuzz.corpus import FOLDER, keep, kept
from benchmarks.fuzz.readers import ROOT, ByteReader, readers

MOST_INPUT: Final = 1 << 16
"""Bytes of one input: what is quadratic shows in the CPU budget by then."""
MOST_MIB: Final = 2048
_INPUT_S: Final = 60
_RUNS: Final = re.compile(r"number_of_executed_units: (\d+)")
_ONCE_MORE: Final = "MERGE-OUTER: attempt 2"
"""In what libFuzzer says where an input of a corpus ended the process that read it."""
_COVERED: Final = re.compile(r"cov: (\d+)")


def main() -> int:
    """Fuzz what the command line asks for; 1 where a reader failed."""
    parser = argparse.ArgumentParser(prog="python -P -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="for all readers together")
    parser.add_argument("--only", action="append", help="this reader alone; may be repeated")
    parser.add_argument("--seed", type=int, default=0, help="of libFuzzer; 0 takes the time")
    parser.add_argument("--corpus", type=Path, help="folder that keeps every input of new code")
    parser.add_argument(
        "--update-corpus",
        action="store_true",
        help=f"then keep in {FOLDER.relative_to(ROOT)} the least inputs that reach the same code",
    )
    parser.add_argument(
        "--replay", action="store_true", help="read the kept inputs only; this needs no atheris"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        known = readers(Path(scratch))
        names = options.only or list(known)
        if unknown := set(names) - known.keys():
            parser.error(f"--only: no reader {', '.join(sorted(unknown))}; {', '.join(known)}")
        if options.replay:
            logging.disable()
            failed = [n for n in names if not replayed(n, known[n], kept(n))]
        else:
            seconds = max(1, round(60 * options.minutes / len(names)))
            place = options.corpus or Path(scratch, "corpus")
            failed = [n for n in names if not _fuzzed(n, known[n], place / n, seconds, options)]
    print(f"{len(names)} readers, {len(failed)} failed: {', '.join(failed) or '-'}")
    return 1 if failed else 0


def replayed(name: str, reader: ByteReader, inputs: Iterable[bytes]) -> bool:
    """Whether a reader withstands its first inputs and some others; prints those it does not."""
    read, failed = 0, 0
    for data in (*reader.seeds, *inputs):
        read += 1
        try:
            within_budget(reader, data)
        except Exception:  # noqa: BLE001 - whatever it is, it is a finding
            failed += 1
            digest = sha1(data, usedforsecurity=False).hexdigest()
            print(f"{name}: input {digest}: {data[:200]!r}\n{traceback.format_exc()}")
    print(f"{name}: {read} inputs, {failed} failed", flush=True)
    return not failed


def _fuzzed(
    name: str, reader: ByteReader, corpus: Path, seconds: int, options: argparse.Namespace
) -> bool:
    """Whether a reader withstands that many seconds."""
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate((*reader.seeds, *kept(name))):
        (corpus / f"first-{number}").write_bytes(data)
    findings, began_s = Path(tempfile.mkdtemp(prefix=f"fuzz-{name}-")), time.monotonic()
    run = _target(
        name,
        *(str(corpus), f"-max_total_time={seconds}", f"-seed={options.seed}"),
        *("-print_final_stats=1", f"-artifact_prefix={findings}/"),
    )
    took_s = time.monotonic() - began_s
    runs, covered = _RUNS.search(run.stderr), _COVERED.findall(run.stderr)
    figures = f"{runs[1] if runs else '?'} inputs, {covered[-1] if covered else '?'} edges"
    print(f"{name}: {figures}, {took_s:.0f} s", flush=True)
    if run.returncode == 0:
        findings.rmdir()
        return not options.update_corpus or _updated(name, reader, corpus)
    print(run.stdout[-4000:] + run.stderr[-4000:])
    for path in findings.iterdir():
        print(f"repeat it: python -P -m benchmarks.fuzz.target {name} FOLDER {path}", flush=True)
    return False


def _updated(name: str, reader: ByteReader, corpus: Path) -> bool:
    """Keep the shortest inputs of a corpus that together reach what all of it does."""
    with tempfile.TemporaryDirectory() as folder:
        for number, data in enumerate(reader.seeds):
            Path(folder, f"first-{number}").write_bytes(data)
        run = _target(name, "-merge=1", folder, str(corpus))
        if run.returncode or _ONCE_MORE in run.stderr:
            print(run.stderr[-4000:])
            return False
        inputs = {path.read_bytes() for path in Path(folder).iterdir()}
    keep(name, inputs - {*reader.seeds})
    print(f"{name}: {len(kept(name))} inputs kept", flush=True)
    return True


def _target(name: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run libFuzzer on a reader, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(
            [
                *(sys.executable, "-P", "-m", "benchmarks.fuzz.target", name, folder),
                *(f"-max_len={MOST_INPUT}", f"-rss_limit_mb={MOST_MIB}", f"-timeout={_INPUT_S}"),
                *options,
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )


if __name__ == "__main__":
    sys.exit(main())
