"""The sample galleries of Sigal, in its three themes."""

from pathlib import Path

from . import command, files, sources

THEMES = ("colorbox", "galleria", "photoswipe")
for theme in THEMES:
    if not Path(theme).exists():
        samples = sources("sigal==2.6.1") / "tests" / "sample"
        text = (samples / "sigal.conf.py").read_text("utf-8")
        (samples / f"{theme}.py").write_text(text.replace('theme = "photoswipe"', f'theme = "{theme}"'))
        command("sigal", "build", "-c", f"{theme}.py", "pictures", Path(theme).absolute(), folder=samples)

apps = files(*THEMES)
