"""Boosted trees of ``gymctl predict fit``, beside those of LightGBM on the same rows."""

from __future__ import annotations

import csv
import json
import subprocess
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import numpy.typing as npt
import pytest

from clustergym.server import find_gymctl

Array = npt.NDArray[np.float64]

LEVELS = {"q10": 0.1, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q90": 0.9}

# The settings of simulator/predict/gbdt, in LightGBM's names.
SETTINGS: dict[str, Any] = {
    "objective": "quantile",
    "num_leaves": 31,
    "min_data_in_leaf": 100,
    "max_bin": 255,
    "learning_rate": 0.1,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "verbose": -1,
}
TREES = 60


def gymctl(*args: str) -> str:
    return subprocess.run([find_gymctl(), *args], check=True, capture_output=True, text=True, timeout=100).stdout


def pinball(level: float, predicted: Array, target: Array) -> float:
    d = target - predicted
    return float(np.mean(np.maximum(level * d, (level - 1) * d)))


def rank_correlation(a: Array, b: Array) -> float:
    def ranks(v: Array) -> Array:
        _, place, count = np.unique(v, return_inverse=True, return_counts=True)
        return (np.cumsum(count) - (count + 1) / 2)[place]  # equal values share the mean

    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


@pytest.mark.parametrize("profile", ["philly", "hpc"])
def test_trees_are_as_good_as_lightgbms(profile: str, tmp_path: Path) -> None:
    jobs, model, rows = (str(tmp_path / name) for name in ("jobs.csv", "model.bin", "rows.csv"))
    gymctl("trace", "synth", "--profile", profile, "--jobs", "8000", "-o", jobs)
    gymctl("predict", "fit", jobs, "--until", "0.6", "-o", model)
    gymctl("predict", "features", jobs, "--model", model, "-o", rows)
    shown = json.loads(gymctl("predict", "show", model, "--json"))
    with open(rows, newline="") as f:
        read = csv.reader(f)
        header = next(read)
        table = np.array([[float(cell) if cell else np.nan for cell in row[1:]] for row in read])
    column = {name: table[:, i] for i, name in enumerate(header[1:])}
    assert list(LEVELS.values()) == shown["levels"]
    assert sorted(header[header.index("unit") + 1 : header.index("target")]) == sorted(
        f["name"] for f in shown["features"]
    )

    fitted = column["end_time"] < shown["until_s"]
    held_out = column["submit_time"] >= shown["until_s"]
    assert fitted.sum() == shown["jobs"]
    assert held_out.sum() == 3200
    x = table[:, header.index("unit") : header.index("target") - 1]  # the column of job_id is left out
    y = column["target"]

    theirs = np.column_stack(
        [
            lightgbm.train({**SETTINGS, "alpha": a}, lightgbm.Dataset(x[fitted], y[fitted]), TREES).predict(x[held_out])
            for a in LEVELS.values()
        ]
    )
    theirs.sort(axis=1)  # quantiles that cross, as gymctl does it
    losses = []
    for i, (name, level) in enumerate(LEVELS.items()):
        ours = np.log(column[name] / column["unit"])[held_out]
        mine, other = pinball(level, ours, y[held_out]), pinball(level, theirs[:, i], y[held_out])
        alike = rank_correlation(ours, theirs[:, i])
        print(f"{profile} {name}: pinball loss {mine:.4f}, LightGBM's {other:.4f}, rank correlation {alike:.4f}")
        losses.append((mine, other))
        assert mine < 1.08 * other
        assert alike > 0.9
    all_of_mine, all_of_theirs = np.sum(losses, axis=0)
    assert all_of_mine < 1.03 * all_of_theirs
