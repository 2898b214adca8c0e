"""The routes of an app, read from its framework."""
