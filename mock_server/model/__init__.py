"""The model that Runtimes call: what a resolve hands out leads here, and scripts say what it answers."""

BASE_PATH = "/__model__"
"""Below it the model of a world is called: ``{BASE_PATH}/{token}/v1``."""
