"""The report of a soak run: tables, targets, plots."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from ..plots import OTHERS, OURS, drawn
from ..tables import Table
from .crawler import Found
from .processes import Slope, slope
from .traffic import Traffic

MB: Final = 2**20
MAX_GROWTH_PERCENT: Final = 1.0
"""Percent an hour by which a worker's memory may grow."""
MIN_SECONDS_TO_JUDGE: Final = 600.0
"""The shortest measurement that has a target: in less time, one memory page makes several percent an hour."""


@dataclass
class Soak:
    """All that was measured of one run."""

    title: str
    machine: str
    what: str
    """What was killed."""
    rate: float
    seconds: float
    warm: float
    """Seconds from the beginning after which memory is measured."""
    kills: list[tuple[float, float]] = field(default_factory=list)
    """From when to when, in seconds from the beginning, the store's engine was down."""
    memory: dict[int, list[tuple[float, float]]] = field(default_factory=dict)
    """Of each worker, its bytes, by seconds from the beginning."""
    cpu: dict[str, float] = field(default_factory=dict)
    """CPU seconds a second, by who used them."""
    logged: list[str] = field(default_factory=list)
    """Lines of the server's log that should not be there."""
    traffic: Traffic = field(default_factory=Traffic)
    crawler: Found = field(default_factory=Found)

    def slopes(self) -> dict[int, Slope | None]:
        """Of each worker that was there from the end of the warm-up to the end."""
        spacing = self.seconds / 20
        return {
            pid: slope([(at, size) for at, size in samples if at >= self.warm])
            for pid, samples in self.memory.items()
            if samples[0][0] <= self.warm and samples[-1][0] >= self.seconds - spacing
        }

    def denied(self) -> list[str]:
        """503s that should not have been: the store was there, or that process had served the document before."""
        return [
            f"{path} was a 503 of process {worker}, {at:.0f} s after the beginning"
            for at, worker, path, had in self.crawler.unavailable
            if had or not any(start <= at <= end + 1 for start, end in self.kills)
        ]


def tables(soak: Soak) -> tuple[list[Table], bool]:
    """The tables, and whether all targets were met."""
    verdict, met = targets(soak)
    return [requests(soak), over_time(soak), memory(soak), cpu(soak), verdict], met


def requests(soak: Soak) -> Table:
    table = Table(f"{soak.title}: what was asked, and answered", ["", "times"])
    for name, count in sorted(soak.traffic.statuses.items()):
        table.add(name, f"{count:,}")
    crawler = soak.crawler
    table.add("the crawler: looks at the whole sitemap", f"{crawler.looks:,}")
    table.add("  documents, each of them valid", f"{crawler.documents:,}")
    table.add("  304s", f"{crawler.unchanged:,}")
    table.add(
        "  503s while the store was down, of a process that never had the document", f"{len(crawler.unavailable):,}"
    )
    if crawler.listed:
        table.add("pages listed at the end", f"{crawler.listed[-1][1]:,}")
    table.add("  of those that changed and say nothing themselves", f"{crawler.edited:,}")
    table.add("  of these, dated", f"{crawler.dated:,}")
    table.add("requests sent twice, for the server had closed the connection", f"{soak.traffic.again:,}")
    table.add(soak.what, f"{len(soak.kills):,} times")
    return table


def over_time(soak: Soak) -> Table:
    table = Table("Milliseconds from when a request was due to its last byte, over time", ["minute", *_COLUMNS])
    windows = soak.traffic.windows
    for start in range(0, len(windows), max(1, len(windows) // 12)):
        window = windows[start]
        table.add(f"{window['at'] / 60:.1f}", *(window.get(column, "") for column in _COLUMNS))
    table.notes.append(
        f"{soak.rate:g} requests a second; 99 of 100 were sent {soak.traffic.late * 1000:.1f} ms late at most."
    )
    return table


_COLUMNS: Final = [f"{group} {share}" for group in ("pages", "sitemaps") for share in ("p50", "p99", "most")]


def memory(soak: Soak) -> Table:
    table = Table("Memory of each worker", ["process", "MB when warm", "at the end", "% an hour", "from", "to"])
    slopes = soak.slopes()
    for pid, samples in soak.memory.items():
        warm = next((size for at, size in samples if at >= soak.warm), samples[-1][1])
        line = slopes.get(pid)
        cells = ("", "", "") if line is None else (line.percent, line.low, line.high)
        table.add(str(pid), warm / MB, samples[-1][1] / MB, *cells)
    table.notes.append(f"Least squares from {soak.warm / 60:.1f} minutes on, with 95 % intervals.")
    return table


def cpu(soak: Soak) -> Table:
    table = Table("CPU, in % of one core", ["", "%"])
    for name, share in soak.cpu.items():
        table.add(name, share * 100)
    table.add("all", sum(soak.cpu.values()) * 100)
    return table


def targets(soak: Soak) -> tuple[Table, bool]:
    table = Table("Targets", ["", "wanted", "found", ""])
    denied, met = soak.denied(), []
    for name, count in (
        ("answers that are not the app's own", soak.traffic.faulty),
        ("faults of the sitemap and its documents", soak.crawler.faulty),
        ("503s of the sitemap without need", len(denied)),
        ("faults in the server's log", len(soak.logged)),
    ):
        met.append(count == 0)
        table.add(name, "0", f"{count:,}", _met(met[-1]))
    lines = [line for line in soak.slopes().values() if line is not None]
    if soak.seconds - soak.warm < MIN_SECONDS_TO_JUDGE or not lines:
        table.add("memory of each worker, % an hour", f"under {MAX_GROWTH_PERCENT:g}", "too short to tell", "")
    else:
        met.append(all(line.percent < MAX_GROWTH_PERCENT for line in lines))
        table.add(
            "memory of each worker, % an hour",
            f"under {MAX_GROWTH_PERCENT:g}",
            f"{max(line.percent for line in lines):.2f}",
            _met(met[-1]),
        )
    table.notes += [*soak.traffic.faults, *soak.crawler.faults, *denied, *soak.logged]
    return table, all(met)


def _met(met: bool) -> str:
    return "met" if met else "MISSED"


# Plots


def save(folder: Path, name: str, soak: Soak) -> None:
    """Write what was measured into a folder, and draw it there."""
    folder.mkdir(parents=True, exist_ok=True)
    results = {
        "title": soak.title,
        "machine": soak.machine,
        "what": soak.what,
        "warm": soak.warm,
        "kills": soak.kills,
        "memory": {str(pid): [(round(at, 1), size) for at, size in samples] for pid, samples in soak.memory.items()},
        "windows": [{key: round(value, 2) for key, value in window.items()} for window in soak.traffic.windows],
        "slopes": {str(pid): None if line is None else asdict(line) for pid, line in soak.slopes().items()},
        "tables": [table.as_json() for table in tables(soak)[0]],
    }
    (folder / f"{name}.json").write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    drawn(folder, name, _figure)


def _figure(plt: Any, results: Mapping[str, Any]) -> Any:
    """Latencies and memory over time, with what was done to the store."""
    figure, panels = plt.subplots(2, 1, figsize=(9, 6), sharex=True, layout="constrained")
    _latency(panels[0], results)
    _memory(panels[1], results)
    for axes in panels:
        for start, end in results["kills"]:
            axes.axvspan(start / 60, max(end / 60, start / 60 + 0.01), color="#d9b3a6", linewidth=0.8)
    panels[1].set_xlabel("minutes")
    figure.suptitle(f"{results['title']}; marked: {results['what']}", x=0.01, ha="left", size=10)
    return figure


def _latency(axes: Any, results: Mapping[str, Any]) -> None:
    for group, color in (("pages", OURS), ("sitemaps", OTHERS)):
        for share, line in (("p50", "-"), ("p99", ":")):
            points = [
                (window["at"] / 60, window[f"{group} {share}"])
                for window in results["windows"]
                if f"{group} {share}" in window
            ]
            axes.plot(*zip(*points, strict=True), line, color=color, label=f"{group}, {share}")
    axes.set_yscale("log")
    axes.set_title("ms from when a request was due to its last byte (log scale)")
    axes.legend(ncols=4, loc="lower right", bbox_to_anchor=(1, 1))


def _memory(axes: Any, results: Mapping[str, Any]) -> None:
    for pid, samples in results["memory"].items():
        line = results["slopes"].get(pid)
        label = f"worker {pid}" if line is None else f"worker {pid}: {line['percent']:+.2f} % an hour"
        axes.plot([at / 60 for at, _ in samples], [size / MB for _, size in samples], label=label)
    axes.axvline(results["warm"] / 60, color=OTHERS, linewidth=0.8)
    axes.set_ylim(bottom=0)
    axes.set_title("memory of each worker, MB; measured from the line on")
    if len(results["memory"]) <= 8:
        axes.legend()
