"""Draws charts as inline SVG. Colours come from classes of the stylesheet: they follow light and dark mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import svg
from markupsafe import Markup, escape

BAR_WIDTH: Final = 100
"""Units of a bar that stands for the whole."""

_WIDTH, _HEIGHT = 1000, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 8, 14, 34
_GRID_LINES: Final = 4


class WeekCounts(NamedTuple):
    """What changed in one week."""

    label: str
    """Its Monday."""
    counts: Mapping[str, int]
    """By kind: new, changed, dropped."""


class Span(NamedTuple):
    """A time during which something was seen."""

    first: int
    last: int
    kind: str
    """A class of the stylesheet: 0 to 7."""
    title: str


def _render(drawing: svg.SVG) -> Markup:
    return Markup(drawing.as_str())  # noqa: S704 # texts are escaped where they are given to elements


def _text(content: str) -> str:
    return str(escape(content))


def bar(number: int, whole: int, kind: str) -> Markup:
    """A bar for a share, beside the number. Screen readers skip it, because the table has the number itself."""
    width = 0 if whole <= 0 else max(1, round(BAR_WIDTH * number / whole)) if number else 0
    return _render(
        svg.SVG(
            viewBox=svg.ViewBoxSpec(0, 0, BAR_WIDTH, 8),
            class_=["bar"],
            extra={"aria-hidden": "true", "preserveAspectRatio": "none"},
            elements=[
                svg.Rect(x=0, y=0, width=BAR_WIDTH, height=8, class_=["track"]),
                svg.Rect(x=0, y=0, width=width, height=8, class_=[kind]),
            ],
        )
    )


def weeks_chart(weeks: Sequence[WeekCounts], kinds: Sequence[str], title: str) -> Markup:
    """Stacked bars, one for each week. The table beside it has the same numbers."""
    top = _nice_top(max((sum(week.counts.values()) for week in weeks), default=0))
    height, width = _HEIGHT - _TOP - _BOTTOM, (_WIDTH - _LEFT - _RIGHT) / max(1, len(weeks))
    elements: list[svg.Element] = [svg.Title(text=_text(title), id="weeks-title")]
    for line in range(_GRID_LINES + 1):
        y = round(_TOP + height * (1 - line / _GRID_LINES), 1)
        elements.append(svg.Line(x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y, class_=["grid"]))
        label = f"{top * line // _GRID_LINES:,}"
        elements.append(svg.Text(x=_LEFT - 8, y=y + 4, text_anchor="end", class_=["axis"], text=label))
    for number, week in enumerate(weeks):
        x, y = _LEFT + number * width, float(_HEIGHT - _BOTTOM)
        for kind in kinds:
            part = height * week.counts.get(kind, 0) / top
            if part:
                y -= part
                tip = svg.Title(text=_text(f"{week.label}: {week.counts[kind]:,} {kind}"))
                elements.append(
                    svg.Rect(
                        x=round(x + width * 0.15, 1), y=round(y, 1), width=round(width * 0.7, 1),
                        height=round(max(part, 1.0), 1), rx=1, class_=[kind], elements=[tip],
                    )
                )  # fmt: skip
        if (len(weeks) - 1 - number) % 5 == 0:
            elements.append(
                svg.Text(
                    x=round(x + width * 0.85, 1), y=_HEIGHT - 6, text_anchor="end", class_=["axis"],
                    text=_text(week.label[5:]),
                )
            )  # fmt: skip
    return _render(
        svg.SVG(
            viewBox=svg.ViewBoxSpec(0, 0, _WIDTH, _HEIGHT), class_=["chart"], elements=elements,
            extra={"role": "img", "aria-labelledby": "weeks-title"},
        )
    )  # fmt: skip


def timeline(lanes: Sequence[tuple[str, Sequence[Span]]], first: int, last: int, ends: tuple[str, str]) -> Markup:
    """Lanes of spans over one time, such as the contents of a page. The list beside it says the same in words."""
    left, lane_height = 230, 34
    height, width = _TOP + lane_height * len(lanes) + _BOTTOM, _WIDTH - left - _RIGHT
    seconds = max(1, last - first)
    elements: list[svg.Element] = [svg.Title(text="Timeline of what was seen", id="timeline-title")]
    for number, (name, spans) in enumerate(lanes):
        y = _TOP + number * lane_height
        elements += [
            svg.Text(x=left - 12, y=y + 18, text_anchor="end", class_=["axis"], text=_text(name)),
            svg.Line(x1=left, x2=_WIDTH - _RIGHT, y1=y + 14, y2=y + 14, class_=["grid"]),
        ]
        for span in spans:
            x = left + width * (span.first - first) / seconds
            part = max(6.0, width * (span.last - span.first) / seconds)
            elements.append(
                svg.Rect(
                    x=round(min(x, _WIDTH - _RIGHT - part), 1), y=y + 6, width=round(part, 1), height=16, rx=3,
                    class_=[f"run{span.kind}"], elements=[svg.Title(text=_text(span.title))],
                )
            )  # fmt: skip
    y = height - 6
    elements += [
        svg.Text(x=left, y=y, class_=["axis"], text=_text(ends[0])),
        svg.Text(x=_WIDTH - _RIGHT, y=y, text_anchor="end", class_=["axis"], text=_text(ends[1])),
    ]
    return _render(
        svg.SVG(
            viewBox=svg.ViewBoxSpec(0, 0, _WIDTH, height), class_=["chart"], elements=elements,
            extra={"role": "img", "aria-labelledby": "timeline-title"},
        )
    )  # fmt: skip


def _nice_top(largest: int) -> int:
    """The number at the top of the axis: at least the largest, and one whose quarters are round."""
    factor = 1
    while True:
        for top in (4, 8, 12, 20, 28):
            if top * factor >= largest:
                return top * factor
        factor *= 10
