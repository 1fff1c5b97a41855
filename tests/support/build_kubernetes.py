"""Build kube-apiserver and etcd: `python -P -m tests.support.build_kubernetes [FOLDER]`.

They are built by `go` from the modules of one release of Kubernetes. Its `go.mod` takes modules of
its own repository from folders that the module lacks; here each is the module of the same release.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from clients.jvm.jars import default_cache_dir

VERSION: Final = "1.37.2"
PACKAGES: Final = {
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "etcd": "go.etcd.io/etcd/server/v3",
}
MODULE: Final = """\
module kubernetes.local

go {go}

require k8s.io/kubernetes v{version}
"""
STAMP: Final = f"-s -w -X k8s.io/component-base/version.gitVersion=v{VERSION}"


def go(folder: Path, *arguments: str) -> str:
    """Output of a command of go in a folder; what it reports meanwhile goes to stderr."""
    run = subprocess.run(
        ["go", *arguments],
        cwd=folder,
        env={**os.environ, "GOFLAGS": "-mod=mod -buildvcs=false"},
        stdout=subprocess.PIPE,
        text=True,
    )
    if run.returncode:
        sys.exit(f"go {arguments[0]} failed with exit code {run.returncode}")
    return run.stdout


def module_of(their_module: str) -> str:
    """A go.mod that can build what Kubernetes' own describes."""
    language = re.search(r"^go (\S+)$", their_module, re.MULTILINE)
    staged = re.findall(r"(k8s\.io/\S+) => \./staging", their_module)
    if language is None or not staged:
        sys.exit("go.mod of Kubernetes has another form than expected")
    minor = VERSION.partition(".")[2]
    replacements = [f"replace {name} => {name} v0.{minor}\n" for name in staged]
    return MODULE.format(go=language[1], version=VERSION) + "".join(replacements)


def main() -> None:
    """Build both programs into a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    usual = default_cache_dir() / "kubernetes"
    parser.add_argument("folder", type=Path, nargs="?", default=usual)
    target: Path = parser.parse_args().folder.resolve()
    if shutil.which("go") is None:
        sys.exit("go is not on the path; Kubernetes is built with Go 1.26 or newer")
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="plimsoll-") as name:
        folder = Path(name)
        found = go(folder, "mod", "download", "-json", f"k8s.io/kubernetes@v{VERSION}")
        text = Path(json.loads(found)["GoMod"]).read_text("utf-8")
        (folder / "go.mod").write_text(module_of(text))
        for program, package in PACKAGES.items():
            output = str(target / program)
            go(folder, "build", "-trimpath", "-ldflags", STAMP, "-o", output, package)
    print(f"export PLIMSOLL_KUBERNETES_HOME={target}")


if __name__ == "__main__":
    main()
