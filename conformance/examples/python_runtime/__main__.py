"""``python -m conformance.examples.python_runtime``, or this file by its path: runs until SIGTERM."""

import sys
from pathlib import Path

if not __package__:  # by path: our own folder would shadow standard modules, the one above the packages is wanted
    sys.path[0] = str(Path(__file__).resolve().parents[3])

from conformance.examples.python_runtime.cli import main

if __name__ == "__main__":
    sys.exit(main())
