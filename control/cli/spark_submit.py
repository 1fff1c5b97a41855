"""Script for `spark-submit`: runs any plimsoll command on that Spark.

spark-submit [its options] control/cli/spark_submit.py COMMAND [options]
"""

import sys
from pathlib import Path

# Python searches a script's own folder first; modules here would shadow others.
_HERE = str(Path(__file__).parent.resolve())
sys.path[:] = [path for path in sys.path if path != _HERE]

from control.cli.main import main  # noqa: E402 - only now

if __name__ == "__main__":
    main()
