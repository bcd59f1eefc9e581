"""Histories of what many Runtimes did at once, and pure checkers of them, in Jepsen's spirit.

An operation is known by its interval: it took effect at some instant between what was sent and what came. Where no
answer came it may have taken effect at any instant since, or never. A history is *invalid* where no reading of these
intervals fits the rules; *unknown* where it fits only if an operation without an answer took effect (or a checker broke
down); *valid* where it fits either way.
"""
