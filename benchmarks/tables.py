"""Results, as text."""

from __future__ import annotations

from dataclasses import dataclass, field

Cell = float | str


@dataclass
class Table:
    """What one benchmark found."""

    title: str
    columns: list[str]
    rows: list[list[Cell]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, *cells: Cell) -> None:
        self.rows.append(list(cells))

    def __str__(self) -> str:
        lines = [self.columns, *([_written(cell) for cell in row] for row in self.rows)]
        for line in lines:
            line += [""] * (len(self.columns) - len(line))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        layout = "  ".join([f"{{:<{widths[0]}}}", *(f"{{:>{width}}}" for width in widths[1:])])
        written = [layout.format(*line).rstrip() for line in lines]
        return "\n".join([self.title, "-" * len(self.title), *written, *self.notes, ""])


def _written(cell: Cell) -> str:
    return cell if isinstance(cell, str) else f"{cell:,.2f}"
