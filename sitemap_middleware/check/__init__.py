"""Checks sitemaps of any origin, on the web, on disk or in an app: the command `check`.

`rules.toml` has the rules. `urls`, `hints`, `hreflang`, `extensions` and `answers` are pure: they return what they
find, as pairs of a code and a text. `entries` and `document` read a document piece by piece, the modules with `source`
in their name provide its bytes, and `runner` runs it all, in fixed memory.
"""
