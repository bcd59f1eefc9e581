"""The scenarios, a theme a module. Each is registered by ``stage.scenario``."""
