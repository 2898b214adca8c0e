"""Checks sitemaps of any origin, on the web, on disk or in an app: the command `check`.

`rules.toml` has the rules. `url_elements` and `extensions` are pure: they return problems, which are pairs of a
code and a text. `document` reads a document piece by piece, `sources` provides its bytes, `run_check` runs it all.
"""
