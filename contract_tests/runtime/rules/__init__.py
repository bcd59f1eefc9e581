"""The monitors, an area a module. Each is registered by ``monitors.monitor``; numbers are the rules' own literals."""
