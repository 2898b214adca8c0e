"""The sample site of Pelican, in its two themes."""

from pathlib import Path

from . import command, files, sources

THEMES = ("notmyidea", "simple")
for theme in THEMES:
    if not Path(theme).exists():
        samples = sources("pelican==4.12.0") / "samples"
        options = ["-t", theme, "-o", Path(theme).absolute(), "-e", 'SITEURL="http://localhost"']
        command("pelican", "content", "-s", "pelican.conf.py", *options, folder=samples)

apps = files(*THEMES)
