"""The protocol's spaces as Gymnasium's, and batches of observations as Gymnasium batches them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from gymnasium import spaces

from .codec import Array
from .errors import ProtocolError

__all__ = ["Batch", "check_batch", "graphs", "parse_space"]


def _ints(value: Any, what: str) -> tuple[int, ...]:
    try:
        return tuple(int(v) for v in value)
    except (TypeError, ValueError) as e:
        raise ProtocolError(f"space: {what} is {value!r}, want a list of integers") from e


def _bound(value: Any, shape: tuple[int, ...], dtype: np.dtype[Any], infinite: float) -> Array:
    """A bound as a full array. None, which is infinity in JSON, becomes the infinity of its side."""
    if value is None:
        value = infinite
    elif isinstance(value, (list, tuple)):
        value = np.array([infinite if v is None else v for v in np.ravel(np.array(value, dtype=object))], np.float64)
        value = value.reshape(shape)
    full: Array = np.broadcast_to(np.asarray(value, dtype=dtype), shape).copy()
    return full


def parse_space(g: Any) -> spaces.Space[Any]:
    """The Gymnasium space that g describes.

    Args:
        g: a map whose ``t`` names the kind: box, discrete, mdiscrete, mbinary, dict, tuple, text, graph or seq.

    Raises:
        ProtocolError: g does not describe a space.
    """
    if not isinstance(g, Mapping):
        raise ProtocolError(f"space: {type(g).__name__}, want a map")
    try:
        return _parse(g)
    except (KeyError, TypeError, ValueError, AssertionError, OverflowError) as e:
        raise ProtocolError(f"space {g.get('t')!r}: {type(e).__name__}: {e}") from e


def _parse(g: Mapping[str, Any]) -> spaces.Space[Any]:
    kind = g["t"]
    if kind == "box":
        shape = _ints(g["shape"], "shape")
        dtype = np.dtype(g["dtype"])
        low, high = (_bound(g[key], shape, dtype, inf) for key, inf in (("low", -np.inf), ("high", np.inf)))
        return spaces.Box(low, high, shape, cast(Any, dtype.type))
    if kind == "discrete":
        dtype = np.dtype(g.get("dtype", "int64"))
        # int64 goes without saying, and must: Gymnasium 0.29 has no other.
        more: dict[str, Any] = {} if dtype == np.int64 else {"dtype": dtype.type}
        return spaces.Discrete(int(g["n"]), start=int(g.get("start", 0)), **more)
    if kind == "mdiscrete":
        dtype = np.dtype(g.get("dtype", "int64"))
        start = g.get("start")
        return spaces.MultiDiscrete(
            np.asarray(g["nvec"], dtype=dtype),
            dtype=cast(Any, dtype.type),
            start=None if start is None else np.asarray(start, dtype=dtype),
        )
    if kind == "mbinary":
        return spaces.MultiBinary(_ints(g["shape"], "shape"))
    if kind == "dict":
        # A list of pairs keeps its order, where a plain dict would be sorted.
        return spaces.Dict([(str(name), parse_space(sub)) for name, sub in g["k"]])
    if kind == "tuple":
        return spaces.Tuple([parse_space(sub) for sub in g["s"]])
    if kind == "text":
        chars = g.get("chars")
        more = {} if not chars else {"charset": chars}
        return spaces.Text(int(g["max"]), min_length=int(g.get("min", 0)), **more)
    if kind == "graph":
        edge = g.get("edge")
        return spaces.Graph(cast(Any, parse_space(g["node"])), None if edge is None else cast(Any, parse_space(edge)))
    if kind == "seq":
        return spaces.Sequence(parse_space(g["s"]))
    raise ProtocolError(
        f"space: kind {kind!r}, want box, discrete, mdiscrete, mbinary, dict, tuple, text, graph or seq"
    )


def check_batch(space: spaces.Space[Any], value: Any, n: int, name: str = "obs") -> None:
    """Checks a batch of n elements of space: structure, dtypes and shapes, not the values.

    Raises:
        ProtocolError: it differs; the message names the part, what is wanted and what came.
    """
    if isinstance(space, spaces.Dict):
        if type(value) is not dict or value.keys() != space.spaces.keys():
            keys = sorted(value) if isinstance(value, dict) else type(value).__name__
            raise ProtocolError(f"{name}: {keys}, want a map of {', '.join(space.spaces)}")
        for key, sub in space.spaces.items():
            check_batch(sub, value[key], n, f"{name}[{key!r}]")
    elif isinstance(space, spaces.Tuple):
        if not isinstance(value, (list, tuple)) or len(value) != len(space.spaces):
            raise ProtocolError(f"{name}: want a list of {len(space.spaces)}")
        for i, sub in enumerate(space.spaces):
            check_batch(sub, value[i], n, f"{name}[{i}]")
    elif isinstance(space, spaces.Graph):
        if type(value) is not dict or "nodes" not in value or "n_nodes" not in value:
            raise ProtocolError(f"{name}: want a map of nodes, n_nodes, edges, edge_links, n_edges")
    elif space.shape is not None and space.dtype is not None:
        if type(value) is not np.ndarray:
            raise ProtocolError(f"{name}: a {type(value).__name__}, want an array of {space.dtype} {(n, *space.shape)}")
        if value.dtype != space.dtype or value.shape != (n, *space.shape):
            raise ProtocolError(
                f"{name}: an array of {value.dtype} {value.shape}, want {space.dtype} {(n, *space.shape)}"
            )


class Batch:
    """Reads batches of n elements of one space: checked, in the space's order, as arrays that the caller owns.

    The arrays of a frame are read-only views of bytes that nothing else refers to.

    Args:
        space: the space of one element.
        n: elements in a batch.
    """

    def __init__(self, space: spaces.Space[Any], n: int) -> None:
        self.space = space
        self.n = n
        self._parts: list[tuple[str, np.dtype[Any], tuple[int, ...]]] | None = None
        self._whole: tuple[np.dtype[Any], tuple[int, ...]] | None = None
        plain = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
        if isinstance(space, plain):
            self._whole = cast(Any, space.dtype), (n, *cast(Any, space.shape))
        elif isinstance(space, spaces.Dict) and all(isinstance(sub, plain) for sub in space.spaces.values()):
            self._parts = [(key, cast(Any, sub.dtype), (n, *cast(Any, sub.shape))) for key, sub in space.spaces.items()]

    def check(self, value: Any) -> None:
        """Checks a batch: structure, dtypes and shapes.

        Raises:
            ProtocolError: it differs.
        """
        try:
            if self._parts is not None:
                if len(value) == len(self._parts):
                    for key, dtype, shape in self._parts:
                        part = value[key]
                        if (part.dtype is not dtype and part.dtype != dtype) or part.shape != shape:
                            break
                    else:
                        return
            elif self._whole is not None and value.dtype == self._whole[0] and value.shape == self._whole[1]:
                return
        except (AttributeError, KeyError, TypeError):
            pass
        check_batch(self.space, value, self.n)

    def all(self, value: Any, copy: bool = True) -> Any:
        """The batch as Gymnasium's vector environments return it; writable if copy."""
        self.check(value)
        if self._parts is not None:
            return {key: value[key].copy() if copy else value[key] for key, _, _ in self._parts}
        if self._whole is not None:
            return value.copy() if copy else value
        return _batch(self.space, value, copy)

    def one(self, value: Any, row: int = 0, copy: bool = True) -> Any:
        """One element of a batch that the caller has checked; writable if copy."""
        if self._parts is not None:
            if copy:
                return {key: value[key][row].copy() for key, _, _ in self._parts}
            return {key: value[key][row] for key, _, _ in self._parts}
        if self._whole is not None:
            return value[row].copy() if copy else value[row]
        return _row(self.space, value, row)


def _batch(space: spaces.Space[Any], value: Any, copy: bool) -> Any:
    if isinstance(space, spaces.Dict):
        return {key: _batch(sub, value[key], copy) for key, sub in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_batch(sub, part, copy) for sub, part in zip(space.spaces, value))
    if isinstance(space, spaces.Graph):
        return graphs(space, value)
    if isinstance(value, np.ndarray):
        return value.copy() if copy else value
    return tuple(value)


def _row(space: spaces.Space[Any], value: Any, row: int) -> Any:
    if isinstance(space, spaces.Dict):
        return {key: _row(sub, value[key], row) for key, sub in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_row(sub, part, row) for sub, part in zip(space.spaces, value))
    if isinstance(space, spaces.Graph):
        return graphs(space, value)[row]
    part = value[row]
    return part.copy() if isinstance(part, np.ndarray) else part


def graphs(space: spaces.Graph, value: Mapping[str, Any]) -> tuple[spaces.GraphInstance, ...]:
    """The graphs of a padded batch, one per environment, without their padding.

    Args:
        space: the space of one graph.
        value: ``nodes`` (n, maxN, F), ``n_nodes`` (n,), ``edges`` (n, maxE, F'), ``edge_links`` (n, maxE, 2) and
            ``n_edges`` (n,); the last three only if the graphs have edges.
    """
    links, counts = value.get("edge_links"), value.get("n_edges")
    out = []
    for i, nodes in enumerate(value["n_nodes"]):
        edges = None
        some = None
        if links is not None and counts is not None:
            k = int(counts[i])
            some = links[i, :k].copy()
            if space.edge_space is not None and value.get("edges") is not None:
                edges = value["edges"][i, :k].copy()
        out.append(spaces.GraphInstance(value["nodes"][i, : int(nodes)].copy(), edges, some))
    return tuple(out)
