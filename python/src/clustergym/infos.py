"""The protocol's info columns as Gymnasium's infos: of one environment, or of a vector environment."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .codec import Array
from .errors import ProtocolError

__all__ = ["blank_info", "blank_rows", "row_info", "spread_info", "vector_info"]


def blank_info(info: str | Sequence[str], metrics: Sequence[str], invalid: str) -> dict[str, Any]:
    """What an info has in place of keys that only some replies of the server bring, so that all infos have the same keys.

    Libraries take the keys of the first info for those of every later one. A key that is missing is a 0 of its type, as in
    Gymnasium's vector infos; a seed that was not drawn is -1, because 0 is a seed. It is never NaN: Gymnasium's checker
    compares infos with ``==``.

    Args:
        info: the argument of that name of an environment.
        metrics: the names of the environment's metrics, which come with an episode's last step.
        invalid: the argument of that name of an environment.
    """
    words = [info] if isinstance(info, str) else list(info)
    if words == ["none"]:
        return {}
    blank: dict[str, Any] = {"seed": -1}
    if invalid != "error":
        blank["invalid"] = False
    if "metrics" in words:
        blank.update(dict.fromkeys(metrics, 0.0))
    if "episode" in words or "all" in words:
        blank["episode"] = {"r": 0.0, "l": 0}
    return blank


def blank_rows(blank: Mapping[str, Any], n: int) -> dict[str, Any]:
    """A blank info for n environments, in which no row has any of its keys."""
    out: dict[str, Any] = {}
    for key, value in blank.items():
        if isinstance(value, dict):
            out[key] = blank_rows(value, n)
        else:
            out[key] = np.full(n, value)
        out["_" + key] = np.zeros(n, np.bool_)
    return out


def _is_mask(key: str, info: Mapping[str, Any]) -> bool:
    return key[:1] == "_" and key[1:] in info


def row_info(
    info: Mapping[str, Any] | None, row: int = 0, blank: Mapping[str, Any] | None = None, ended: bool = False
) -> dict[str, Any]:
    """The info of one environment: float, int, bool and str of Python, arrays that the caller owns, maps of these.

    Args:
        info: columns, each ``key`` with its ``_key``: which rows have it.
        row: the environment's place in the columns.
        blank: of :func:`blank_info`, for what the row lacks; None leaves out what it lacks.
        ended: the row is of an episode's last step, so that a number that it lacks is unknown, and NaN.
    """
    out: dict[str, Any] = {}
    if blank:
        for key, value in blank.items():
            out[key] = dict(value) if type(value) is dict else value
    if not info:
        return out
    for key, column in info.items():
        if _is_mask(key, info):
            continue
        mask = info.get("_" + key)
        if mask is not None and not mask[row]:
            if blank and type(column) is np.ndarray and column.ndim == 1 and column.dtype.kind == "f":
                out[key] = math.nan if ended else 0.0
            continue
        if type(column) is np.ndarray:
            value = column[row]
            out[key] = value.copy() if column.ndim > 1 else value.item()
        elif isinstance(column, dict):
            out[key] = row_info(column, row)
        else:
            out[key] = column[row]
    return out


def _column(column: Any) -> Array:
    """A writable column of the type that Gymnasium uses for Python's numbers."""
    if not isinstance(column, np.ndarray):
        out = np.full(len(column), None, dtype=object)
        out[:] = column
        return out
    if column.ndim == 1:
        kind = column.dtype.kind
        wide = np.float64 if kind == "f" else np.int64 if kind in "iu" else column.dtype
        return np.array(column, dtype=wide)
    return np.array(column)


def vector_info(
    info: Mapping[str, Any] | None, n: int, outer: Array | None = None, blank: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The infos of n environments from n rows: every ``key`` with a ``_key``, zeros where it is missing.

    Args:
        info: columns, each ``key`` with its ``_key``: which rows have it.
        n: rows.
        outer: which rows have info at all; None = all. A map inside a map has at most the rows of that map.
        blank: of :func:`blank_info`: keys that the infos have even if no row has them.

    Raises:
        ProtocolError: a column is of another length.
    """
    out: dict[str, Any] = blank_rows(blank, n) if blank else {}
    if not info:
        return out
    for key, column in info.items():
        if _is_mask(key, info):
            continue
        mask = info.get("_" + key, outer)
        if isinstance(column, dict):
            values: Any = vector_info(column, n, mask)
        else:
            if len(column) != n:
                raise ProtocolError(f"info[{key!r}] has {len(column)} rows, want {n}")
            values = _column(column)
        if mask is None:
            mask = np.ones(n, np.bool_)
        else:
            if len(mask) != n:
                raise ProtocolError(f"info['_{key}'] has {len(mask)} rows, want {n}")
            raw = mask.tobytes()
            if b"\x01" not in raw and not blank:
                continue
            mask = mask.copy()
            if b"\0" in raw and isinstance(values, np.ndarray):
                absent = blank.get(key, 0) if blank else 0
                values[~mask] = None if values.dtype == object else absent
        out[key], out["_" + key] = values, mask
    return out


def spread_info(
    info: Mapping[str, Any] | None, rows: Array, n: int, blank: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The infos of n environments if only some have any: row i of the columns belongs to environment rows[i]. blank is that
    of :func:`vector_info`."""
    out: dict[str, Any] = {}
    k = len(rows)
    for key, values in vector_info(info, k, None, blank).items():
        if isinstance(values, dict):
            out[key] = spread_info(values, rows, n)
        else:
            wide: Array = np.zeros((n, *values.shape[1:]), values.dtype)
            if values.dtype == object:
                wide.fill(None)
            wide[rows] = values
            out[key] = wide
    return out
