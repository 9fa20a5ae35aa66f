"""Results as columns: to print, to show in a notebook, and for pandas, CSV files and LaTeX."""

from __future__ import annotations

import csv
import html
import importlib
import io
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .codec import Array

__all__ = ["Table"]

# Rows that a printed table shows of a long one: half of them from its beginning, half from its end.
_SHOWN = 40
_LATEX = {"&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}",
          "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}  # fmt: skip


class Table:
    """Columns of equal length by their names, which carry the units: ``table["JCT mean (s)"]``.

    Args:
        columns: arrays or sequences of equal length.

    Raises:
        ValueError: the lengths differ.
    """

    def __init__(self, columns: Mapping[str, Array | Sequence[Any]]) -> None:
        self._columns: dict[str, Array] = {}
        for name, values in columns.items():
            if isinstance(values, np.ndarray):
                self._columns[name] = values
            elif all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in values) and len(values) > 0:
                self._columns[name] = np.asarray(values)
            else:
                column = np.empty(len(values), object)
                column[:] = values
                self._columns[name] = column
        lengths = {name: len(values) for name, values in self._columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns of different lengths: {lengths}")

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""
        return list(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()))) if self._columns else 0

    def __getitem__(self, name: str) -> Array:
        """A column by its name."""
        try:
            return self._columns[name]
        except KeyError:
            raise KeyError(f"no column {name!r}, there are {', '.join(self._columns)}") from None

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows, each by the names of the columns, with Python's own numbers."""
        for i in range(len(self)):
            yield {name: _plain(values[i]) for name, values in self._columns.items()}

    def _cells(self) -> tuple[list[str], list[list[str]], list[bool]]:
        """Names, rows of texts, and which columns are numbers."""
        n = len(self)
        chosen = range(n) if n <= _SHOWN else [*range(_SHOWN // 2), *range(n - _SHOWN // 2, n)]
        formats = [_format(values) for values in self._columns.values()]
        rows = [[form(_plain(values[i])) for form, values in zip(formats, self._columns.values())] for i in chosen]
        return self.columns, rows, [values.dtype.kind in "iuf" for values in self._columns.values()]

    def __str__(self) -> str:
        names, rows, numbers = self._cells()
        widths = [max(map(len, column)) for column in zip(names, *rows)] if names else []

        def line(cells: list[str]) -> str:
            parts = [
                cell.rjust(width) if right else cell.ljust(width) for cell, width, right in zip(cells, widths, numbers)
            ]
            return "  ".join(parts).rstrip()

        lines = [line(names), *map(line, rows)]
        if len(self) > len(rows):
            lines.insert(1 + _SHOWN // 2, f"… {len(self) - len(rows)} more rows …")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Table({len(self)} rows: {', '.join(self._columns)})"

    def _repr_html_(self) -> str:
        names, rows, numbers = self._cells()
        right = ["right" if number else "left" for number in numbers]

        def line(tag: str, cells: list[str]) -> str:
            inner = "".join(
                f'<{tag} style="text-align:{side}">{html.escape(cell)}</{tag}>' for side, cell in zip(right, cells)
            )
            return f"<tr>{inner}</tr>"

        body = [line("td", row) for row in rows]
        if len(self) > len(rows):
            more = f'<tr><td colspan="{len(names)}">… {len(self) - len(rows)} more rows …</td></tr>'
            body.insert(_SHOWN // 2, more)
        return f"<table><thead>{line('th', names)}</thead><tbody>{''.join(body)}</tbody></table>"

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame`` of the columns.

        Raises:
            ModuleNotFoundError: pandas is not installed.
        """
        return importlib.import_module("pandas").DataFrame(self._columns)

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Writes the table as CSV with all digits, to a file or, without one, to the text that it returns. What is not known
        is an empty cell.
        """
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self._columns)
        for row in self.rows():
            writer.writerow(["" if _missing(value) else value for value in row.values()])
        if path is None:
            return out.getvalue()
        Path(path).write_text(out.getvalue(), encoding="utf-8")
        return None

    def to_latex(self) -> str:
        """The table as a LaTeX ``tabular`` with the rules of the package booktabs."""
        names, rows, numbers = self._cells()

        def line(cells: list[str]) -> str:
            return " & ".join("".join(_LATEX.get(c, c) for c in cell) for cell in cells) + r" \\"

        layout = "".join("r" if number else "l" for number in numbers)
        inner = [line(row) for row in rows]
        return "\n".join([
            rf"\begin{{tabular}}{{{layout}}}", r"\toprule", line(names), r"\midrule", *inner, r"\bottomrule",
            r"\end{tabular}",
        ])  # fmt: skip


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _format(values: Array) -> Any:
    """How the values of a column are shown: numbers with as many decimals as the smallest needs for three digits."""
    if values.dtype.kind != "f":
        return lambda value: "" if value is None else str(value)
    sizes = np.abs(values[np.isfinite(values) & (values != 0)])
    least = float(sizes.min()) if sizes.size else 0.0
    whole = bool(np.all(sizes == np.round(sizes)))
    places = 0 if whole else 3 if least < 1 else 2 if least < 10 else 1 if least < 1000 else 0
    return lambda value: "" if _missing(value) else f"{value:.{places}f}"
