"""Checks sitemaps of any origin, on the web, on disk or in an app: the command `check`.

`rules.toml` has the rules. `values` and `extensions` are pure: they return problems, which are pairs of a code
and a text. `document` reads a document piece by piece, and `sources` provides its bytes, and `run_check` runs it all.
"""
