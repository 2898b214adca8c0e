"""Apps from PyPI as their authors published them, each wrapped in one line. `python3 -m tests.real_apps` runs them.

Each module is served by the environment of its own app. Its working directory is
a new folder, where the app keeps its data.
"""
