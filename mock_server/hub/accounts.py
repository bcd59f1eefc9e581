"""Whose key a request carries."""

ACCOUNTS = ("a", "b")
"""The accounts of the two API keys; what one does is invisible to the other (HUB-AUTH-54 to 57)."""

SECOND = "_b"
"""What the second key has behind the first (HUB-AUTH-57)."""


def tokens(first: str) -> tuple[str, str]:
    """The keys of the accounts, in their order."""
    return first, first + SECOND
