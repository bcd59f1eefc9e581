"""``python -m conformance`` is the ``contract`` command."""

from conformance.cli import main

main()
