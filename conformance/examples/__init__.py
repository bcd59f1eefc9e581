"""Runtimes to learn from, and to test with what judges them: each keeps every rule, unless told to break one."""
