"""What `spark-submit` runs: any of plimsoll's commands, on the Spark it was given.

spark-submit [its options] control/cli/spark_submit.py COMMAND [options]
"""

import sys
from pathlib import Path

# A script's own folder is looked into first; modules here would stand for others'.
_HERE = str(Path(__file__).parent.resolve())
sys.path[:] = [path for path in sys.path if path != _HERE]

from control.cli.main import main  # noqa: E402 - only now

if __name__ == "__main__":
    main()
