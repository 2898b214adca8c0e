"""A tour: how a sitemap changes when its site does. Run by `python3 examples --tour`."""

import difflib
import re

from flask import Flask

from sitemap_middleware import SitemapMiddleware

DAY = 24 * 60 * 60
START = 1_767_225_600.0  # 2026-01-01, at 0:00: day 1 begins
now = [START]  # the tour sets the clock itself, so days pass at once
bread = {"text": "Rye and spelt.", "status": 200, "robots": "all"}
PAGE = "<main><h1>Bread</h1><p>%s</p></main>"
app = Flask(__name__)
app.add_url_rule("/", "home", lambda: "<main><h1>The Corner Bakery</h1></main>")
app.add_url_rule("/admin", "admin", lambda: ("Bakers only", 403))
app.add_url_rule("/bread", "bread", lambda: (PAGE % bread["text"], bread["status"], {"X-Robots-Tag": bread["robots"]}))
app.wsgi_app = site = SitemapMiddleware(
    app.wsgi_app, base_url="https://bakery.example", store="memory://", clock=lambda: now[0]
)
client = app.test_client()
shown = []


def show(what: str, days: int = 1) -> None:
    """Let some days pass with four visits each, and print how the sitemap differs from the one before."""
    for _ in range(days * 4):
        now[0] += DAY / 4
        for path in ("/", "/bread"):
            client.get(path).get_data()  # a server reads the body, Flask's test client only if told to
        sitemap = re.findall("<url>.*</url>", client.get("/sitemap.xml").text)
    print(f"\n# End of day {round((now[0] - START) / DAY)}: {what}")
    for line in difflib.ndiff(shown, sitemap):
        if not line.startswith("?"):
            print(line)
    shown[:] = sitemap


show("The site starts. The middleware requests each page once. /admin answers 403, so it is not listed.", days=2)
bread["text"] = "Rye, spelt and baguettes."
show("The text of /bread was edited on day 3. The new text stayed, so the page has a date.", days=3)
bread["status"] = 410
show("/bread is closed: it answers 410.")
bread["status"] = 200
show("/bread is open again.")
bread["robots"] = "noindex"
show("/bread says noindex.")
print("\n# Why is each page listed, or not?")
for path in ("/bread", "/admin", "/"):
    print(site.explain(path))
