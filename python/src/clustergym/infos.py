"""The protocol's info columns as Gymnasium's infos: of one environment, or of a vector environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .codec import Array
from .errors import ProtocolError

__all__ = ["row_info", "spread_info", "vector_info"]


def _is_mask(key: str, info: Mapping[str, Any]) -> bool:
    return key[:1] == "_" and key[1:] in info


def row_info(info: Mapping[str, Any] | None, row: int = 0) -> dict[str, Any]:
    """The info of one environment: float, int, bool and str of Python, arrays that the caller owns, maps of these.

    Args:
        info: columns, each ``key`` with its ``_key``: which rows have it.
        row: the environment's place in the columns.
    """
    out: dict[str, Any] = {}
    if not info:
        return out
    for key, column in info.items():
        if _is_mask(key, info):
            continue
        mask = info.get("_" + key)
        if mask is not None and not mask[row]:
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


def vector_info(info: Mapping[str, Any] | None, n: int, outer: Array | None = None) -> dict[str, Any]:
    """The infos of n environments from n rows: every ``key`` with a ``_key``, zeros where it is missing.

    Args:
        info: columns, each ``key`` with its ``_key``: which rows have it.
        n: rows.
        outer: which rows have info at all; None = all. A map inside a map has at most the rows of that map.

    Raises:
        ProtocolError: a column is of another length.
    """
    out: dict[str, Any] = {}
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
            if b"\x01" not in raw:
                continue
            mask = mask.copy()
            if b"\0" in raw and isinstance(values, np.ndarray):
                values[~mask] = None if values.dtype == object else 0
        out[key], out["_" + key] = values, mask
    return out


def spread_info(info: Mapping[str, Any] | None, rows: Array, n: int) -> dict[str, Any]:
    """The infos of n environments if only some have any: row i of the columns belongs to environment rows[i]."""
    out: dict[str, Any] = {}
    k = len(rows)
    for key, values in vector_info(info, k).items():
        if isinstance(values, dict):
            out[key] = spread_info(values, rows, n)
        else:
            wide: Array = np.zeros((n, *values.shape[1:]), values.dtype)
            if values.dtype == object:
                wide.fill(None)
            wide[rows] = values
            out[key] = wide
    return out
