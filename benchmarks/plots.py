"""`python -m benchmarks.plots`: draw the figures that `python -m benchmarks --plot` wrote."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parent / "plots"

OURS, OTHERS, PALE = "#1b6ca8", "#9aa5ad", "#c9d3d9"

STYLE: Final = {
    "svg.hashsalt": "sitemap",  # the same figures are drawn as the same bytes
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "legend.frameon": False,
}

Tables = list[dict[str, Any]]


def save(folder: Path, name: str, machine: str, tables: Tables) -> None:
    """Write the figures of a benchmark into a folder, and draw them there."""
    folder.mkdir(parents=True, exist_ok=True)
    results = {"machine": machine, "tables": tables}
    (folder / f"{name}.json").write_text(json.dumps(results, indent=2) + "\n", "utf-8")
    draw(folder, name)


def draw(folder: Path, name: str) -> None:
    """Draw the figures of a benchmark that are in a folder."""
    drawn(folder, name, lambda plt, results: DRAWN[name](plt, results["tables"]))


def drawn(folder: Path, name: str, figure_of: Callable[[Any, dict[str, Any]], Any]) -> None:
    """Draw the figures of a JSON file as an SVG file beside it."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    results = json.loads((folder / f"{name}.json").read_text("utf-8"))
    with mpl.rc_context(STYLE):
        figure = figure_of(plt, results)
        figure.supxlabel(results["machine"], x=0.995, ha="right", size=7, color=OTHERS)
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        plt.close(figure)


def _request(plt: Any, tables: Tables) -> Any:
    """The time that each middleware adds to a page, by framework."""
    names = {"pass-through": PALE, "SitemapMiddleware": OURS, "CORSMiddleware": OTHERS, "BaseHTTPMiddleware": "#6b7780"}
    browser_tables = [table for table in tables if table["title"].endswith("a page, asked for by a browser")]
    figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
    at, ticks = 0.0, []
    for table in browser_tables:
        rows = [row for row in table["rows"] if row["name"] in names]
        for row in rows:
            _bar(axes, at, row["added"], names[row["name"]])
            at += 1
        ticks.append((at - len(rows) / 2 - 0.5, table["title"].partition(":")[0]))
        at += 0.7
    axes.set_yticks([place for place, _ in ticks], [title for _, title in ticks])
    _in_logs(axes, least=0.05)
    axes.set_title("Added to a page's request, µs (log scale)")
    axes.legend(handles=[plt.Rectangle((0, 0), 1, 1, color=color) for color in names.values()], labels=list(names))
    return figure


def _generation(plt: Any, tables: Tables) -> Any:
    """How long one document takes to make, beside the peers."""
    rows = sorted(tables[0]["rows"], key=lambda row: row["ms"])
    figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
    for at, row in enumerate(rows):
        color = OURS if row["name"].startswith("ours") else PALE if row["name"].startswith("gzip") else OTHERS
        _bar(axes, at, row["ms"], color)
    axes.set_yticks(range(len(rows)), [row["name"] for row in rows])
    _in_logs(axes)
    axes.set_title(f"{tables[0]['title']}: ms (log scale); ours are gzipped")
    return figure


def _scale(plt: Any, tables: Tables) -> Any:
    """Time and memory against the pages of a site."""
    of = {table["title"].partition(":")[0].partition(",")[0]: table["rows"] for table in tables}
    figure, panels = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
    for axes, title, rows, lines in (
        (
            panels[0],
            "all documents, CPU seconds",
            of["All documents"],
            {"from rows, s": "from rows", "from what is rendered, s": "from what is rendered", "Django, s": "Django"},
        ),
        (
            panels[1],
            "one request for the sitemap, ms",
            of["One request for the sitemap"],
            {"first of a process, ms": "first of a process", "after one change, ms": "after one change"},
        ),
        (
            panels[2],
            "memory over the idle process, MB",
            of["Memory over that of the idle process"],
            {"merging, MB": "merging", "rendering, MB": "rendering", "serving, MB": "serving"},
        ),
    ):
        pages = [int(row["name"].replace(",", "")) for row in rows]
        for column, label in lines.items():
            color = {"Django, s": OTHERS}.get(column)
            axes.plot(pages, [row[column] for row in rows], marker=".", label=label, color=color)
        axes.set_xscale("log")
        axes.set_xlabel("pages")
        axes.set_title(title)
        axes.legend()
    panels[0].set_yscale("log")
    for axes in panels[1:]:
        axes.set_ylim(bottom=0)
    return figure


def _bar(axes: Any, at: float, value: float, color: str) -> None:
    axes.barh(at, value, 0.85, color=color)
    axes.text(max(value, 0.05), at, f" {value:,.1f}" if value < 100 else f" {value:,.0f}", va="center", size=8)


def _in_logs(axes: Any, least: float | None = None) -> None:
    """Bars by the logarithm, each with its value beside it; what is less, or nothing, has none."""
    axes.set_xscale("log")
    axes.set_xlim(left=least)
    axes.xaxis.set_visible(False)
    axes.spines["bottom"].set_visible(False)
    axes.invert_yaxis()


DRAWN: Final[Mapping[str, Callable[[Any, Tables], Any]]] = {
    "request": _request,
    "generation": _generation,
    "scale": _scale,
}
"""What can be drawn, and how."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plots", description="Draw what was measured.")
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER, help="where the figures are, and the plots go")
    folder = parser.parse_args().folder
    for name in DRAWN:
        if (folder / f"{name}.json").exists():
            draw(folder, name)


if __name__ == "__main__":
    main()
