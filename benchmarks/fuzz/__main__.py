"""Fuzzes every reader in turn: `python -P -m benchmarks.fuzz --minutes 10`.

Inputs that found new code are kept in `--corpus`, by reader; a failing one is printed with the
command that repeats it.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.fuzz.readers import readers

MOST_INPUT: Final = 1 << 16
"""Bytes of one input: what is quadratic shows in the CPU budget by then."""
MOST_MIB: Final = 2048
_INPUT_S: Final = 60
_RUNS: Final = re.compile(r"number_of_executed_units: (\d+)")
_COVERED: Final = re.compile(r"cov: (\d+)")


def main() -> int:
    """Fuzz what the command line asks for; 1 where a reader failed."""
    parser = argparse.ArgumentParser(prog="python -P -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="for all readers together")
    parser.add_argument("--only", action="append", help="this reader alone; may be repeated")
    parser.add_argument("--seed", type=int, default=0, help="of libFuzzer; 0 takes the time")
    parser.add_argument("--corpus", type=Path, help="folder of inputs; by default none is kept")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        seeds = {name: reader.seeds for name, reader in readers(Path(scratch)).items()}
        names = options.only or list(seeds)
        seconds = max(1, round(60 * options.minutes / len(names)))
        failed = []
        for name in names:
            corpus = (options.corpus or Path(scratch, "corpus")) / name
            corpus.mkdir(parents=True, exist_ok=True)
            for number, seed in enumerate(seeds[name]):
                (corpus / f"seed-{number}").write_bytes(seed)
            if not _fuzz(name, corpus, seconds, options.seed):
                failed.append(name)
    print(f"{len(names)} readers, {len(failed)} failed: {', '.join(failed) or '-'}")
    return 1 if failed else 0


def _fuzz(name: str, corpus: Path, seconds: int, seed: int) -> bool:
    """Whether a reader withstands that many seconds."""
    findings = Path(tempfile.mkdtemp(prefix=f"fuzz-{name}-"))
    with tempfile.TemporaryDirectory() as folder:
        began_s = time.monotonic()
        run = subprocess.run(
            [
                *(sys.executable, "-P", "-m", "benchmarks.fuzz.target", name, folder),
                *(str(corpus), f"-max_total_time={seconds}", f"-seed={seed}"),
                *(f"-max_len={MOST_INPUT}", f"-rss_limit_mb={MOST_MIB}", f"-timeout={_INPUT_S}"),
                *("-print_final_stats=1", f"-artifact_prefix={findings}/"),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        took_s = time.monotonic() - began_s
    runs, covered = _RUNS.search(run.stderr), _COVERED.findall(run.stderr)
    figures = f"{runs[1] if runs else '?'} inputs, {covered[-1] if covered else '?'} edges"
    print(f"{name}: {figures}, {took_s:.0f} s", flush=True)
    if run.returncode == 0:
        findings.rmdir()
        return True
    print(run.stdout[-4000:] + run.stderr[-4000:])
    for path in findings.iterdir():
        print(f"repeat it: python -P -m benchmarks.fuzz.target {name} FOLDER {path}", flush=True)
    return False


if __name__ == "__main__":
    sys.exit(main())
