"""MoinMoin 2 (Flask), a wiki, with the pages of its help."""

from pathlib import Path

from . import command

if not Path("wikiconfig.py").exists():
    command("moin", "create-instance", "--full")

from moin.app import create_app

app = create_app("wikiconfig.py")
