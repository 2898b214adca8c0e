"""How the example sites look: one kind of page, with a little CSS and nothing from other servers."""

STYLE = """
:root { --accent: %s; --paper: %s; color-scheme: light }
* { box-sizing: border-box }
body { margin: 0; font: 1.1rem/1.6 system-ui, sans-serif; color: #2b2b2b; background: var(--paper) }
header { background: var(--accent); color: #fff; padding: 1.2rem max(1rem, 50vw - 24rem) }
header a, header button { color: #fff; margin-right: 1.2rem; text-decoration: none }
header a:first-child { font-size: 1.5rem; font-weight: 700; display: block }
main { max-width: 48rem; margin: 2rem auto; padding: 0 1rem; min-height: 55vh }
h1 { line-height: 1.2; font-size: 2.2rem }
ul { display: grid; grid-template-columns: repeat(auto-fill, minmax(14rem, 1fr)); gap: 1rem; padding: 0 }
li { list-style: none; background: #fff; border-radius: .6rem; padding: 1rem 1.2rem; box-shadow: 0 1px 4px #0002 }
li a { color: var(--accent); font-weight: 600; text-transform: capitalize }
button { font: inherit; border: 0; border-radius: .4rem; padding: .5rem 1.2rem; color: #fff; background: var(--accent) }
footer { max-width: 48rem; margin: 0 auto; padding: 1rem; border-top: 1px solid #0002; font-size: .9rem }
footer a { color: inherit; margin-right: 1rem }
"""
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>%s</title><style>%s</style></head>
<body><header>%s</header><main><h1>%s</h1>%s</main>
<footer>%s<a href="/sitemap.xml">Sitemap</a><a href="/robots.txt">robots.txt</a></footer></body></html>
"""


class Theme:
    """The look of one site."""

    def __init__(self, name: str, accent: str, paper: str, sections: tuple[str, ...], others: tuple[str, ...]) -> None:
        self._name = name
        self._style = STYLE % (accent, paper)
        self._header = f'<a href="/">{name}</a>{_links(sections)}'
        self._footer = _links(others)

    def page(self, heading: str, text: str) -> str:
        """A page of the site."""
        return PAGE % (f"{heading} - {self._name}", self._style, self._header, heading, text, self._footer)


def cards(folder: str, texts: dict[str, str]) -> str:
    """A card for each name and its text, with a link to its page."""
    items = (f'<li><a href="{folder}/{name}">{name}</a><br>{text}</li>' for name, text in texts.items())
    return f"<ul>{''.join(items)}</ul>"


def button(text: str) -> str:
    """A form with nothing but a button."""
    return f'<form method="post"><button>{text}</button></form>'


def _links(names: tuple[str, ...]) -> str:
    return "".join(f'<a href="/{name}">{name.partition("/")[0].capitalize()}</a>' for name in names)
