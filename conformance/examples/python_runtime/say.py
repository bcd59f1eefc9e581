"""What the process says of itself: on standard error, one line at a time, never a text that came from outside."""

import sys


def say(text: str) -> None:
    """Say something; to nobody where nobody listens any more."""
    try:
        sys.stderr.write(f"runtime: {text}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass
