"""The demo site of Nikola, in two of its themes."""

from pathlib import Path

from . import command, files

THEMES = ("bootblog4", "base")
for theme in THEMES:
    if not Path(theme).exists():
        command("nikola", "init", "--quiet", "--demo", f"source-{theme}")
        configuration = Path(f"source-{theme}", "conf.py")
        text = configuration.read_text("utf-8")
        text = text.replace('THEME = "bootblog4"', f'THEME = "{theme}"')
        configuration.write_text(text + f'\nOUTPUT_FOLDER = "../{theme}"\nBASE_URL = SITE_URL = "http://localhost/"\n')
        command("nikola", "build", folder=configuration.parent)

apps = files(*THEMES)
