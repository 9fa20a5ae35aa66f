"""Rows that were measured: one JSON file each, found again by what was to be measured."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Job = dict[str, Any]


def name(job: Job) -> str:
    """The file name of job's row, without its ending."""
    words = [job.get("problem", job["kind"]), job["implementation"], str(job.get("seed", job.get("round")))]
    return ".".join(re.sub(r"[^a-z0-9]+", "-", w.lower()).strip("-") for w in words)


class Store:
    """A folder of rows, with what their workers wrote to standard error beside them."""

    def __init__(self, folder: Path) -> None:
        self.rows, self.logs = folder / "rows", folder / "logs"

    def open(self) -> None:
        """Makes the folders."""
        self.rows.mkdir(parents=True, exist_ok=True)
        self.logs.mkdir(exist_ok=True)

    def path(self, job: Job) -> Path:
        return self.rows / f"{name(job)}.json"

    def log(self, job: Job) -> Path:
        return self.logs / f"{name(job)}.txt"

    def find(self, job: Job) -> Row | None:
        """The row of exactly this job: one of other settings, or one that cannot be read, is measured anew."""
        try:
            row = json.loads(self.path(job).read_text())
        except (OSError, ValueError):
            return None
        return row if isinstance(row, dict) and row.get("job") == job and "result" in row else None
