"""Interquartile means and their intervals, as ``experiments/stats.go`` and ``seeds_report.go`` compute them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

DRAWS = 10_000
Floats = npt.NDArray[np.float64]


def weights(n: int) -> Floats:
    """The share of each of n sorted values that lies in the middle half: those at its edges count in part."""
    cut = n / 4
    edges = np.clip(np.arange(n + 1), cut, n - cut)
    return np.asarray(np.diff(edges) / (n - 2 * cut), dtype=np.float64)


def iqm(values: Sequence[float] | Floats) -> float:
    """The mean of what is left when the lowest and the highest quarter are cut off."""
    v = np.sort(np.asarray(values, dtype=np.float64))
    return float(v @ weights(len(v)))


def interval(runs: Sequence[Sequence[float]], draws: int = DRAWS, seed: int = 1) -> tuple[float, float]:
    """The 95 % percentile interval of the IQM over [seed][episode].

    Each resample draws seeds with replacement and, within each of them, its episodes.
    """
    table = np.asarray(runs, dtype=np.float64)
    seeds, episodes = table.shape
    if (table == table[0, 0]).all():
        return float(table[0, 0]), float(table[0, 0])
    rng = np.random.default_rng(seed)
    share = weights(seeds * episodes)
    out = np.empty(draws)
    for first in range(0, draws, 1000):  # a thousand at a time are a few megabytes
        n = min(1000, draws - first)
        rows = rng.integers(seeds, size=(n, seeds, 1))
        drawn = table[rows, rng.integers(episodes, size=(n, seeds, episodes))].reshape(n, -1)
        drawn.sort(axis=1)
        out[first : first + n] = drawn @ share
    low, high = np.quantile(out, [0.025, 0.975])  # linear between order statistics
    return float(low), float(high)


def no_worse(ours: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether the intervals overlap or ours lies above."""
    return ours[1] >= other[0]
