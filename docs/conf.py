"""Sphinx: the documentation as a site. `python3 tests --only=docs` builds it, and takes a warning for an error."""

import sys
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from check_rules import write_pages

write_pages()

_PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8"))["project"]

project = _PROJECT["name"]
release = version = _PROJECT["version"]
author = _PROJECT["authors"][0]["name"]
copyright = author  # noqa: A001 # Sphinx names it so

extensions = ["myst_parser"]
exclude_patterns = ["_build"]
nitpicky = True
myst_enable_extensions = ["attrs_block"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"{project} {version}"
html_copy_source = False
html_show_sourcelink = False
