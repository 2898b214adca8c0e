"""Checks sitemaps of any origin, on the web, on disk or in an app: the command `check`.

`rules/` declares what can be reported. `checks/` are pure functions that find it in what was read. The other modules
read documents, in fixed memory, and collect the messages.
"""
