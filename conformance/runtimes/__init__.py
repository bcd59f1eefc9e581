"""Runtimes as clients: what starts them, plays scenarios with them, and records what they do."""
