"""Reads observations from the memory of a server on the same machine.

A server that shares memory names a file under ``/proc``. That path may mean something else here, if the connection is a
tunnel or the server runs in another container or as another user. So the random bytes in the file are compared first.
"""

from __future__ import annotations

import math
import mmap
import os
import re
import stat
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from .codec import Array
from .errors import ProtocolError

__all__ = ["POSSIBLE", "Region", "sees"]

#: Whether this system has such memory.
POSSIBLE = sys.platform == "linux"

_PATH = re.compile(r"/proc/\d+/fd/\d+")
_FLOAT = np.dtype(np.float32)


def _open(path: object, size: int) -> int:
    """A descriptor of the memory.

    Raises:
        OSError: this process does not see it, or it is something else.
    """
    if not isinstance(path, str) or not _PATH.fullmatch(path):
        raise OSError(f"{path!r} is no path of shared memory")
    # Whatever the file is, opening it must not block and must not acquire a controlling terminal.
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size != size:
            raise OSError(f"{path} is no shared memory of {size} bytes")
    except BaseException:
        os.close(fd)
        raise
    return fd


def sees(probe: object) -> bool:
    """Whether this process sees the server's memory.

    Args:
        probe: from the server's welcome: the ``path`` of a few random bytes, and the bytes (``check``).
    """
    if not POSSIBLE or not isinstance(probe, Mapping):
        return False
    check = probe.get("check")
    if not isinstance(check, bytes) or len(check) < 16:
        return False
    try:
        fd = _open(probe.get("path"), len(check))
    except OSError:
        return False
    try:
        return os.pread(fd, len(check), 0) == check
    except OSError:
        return False
    finally:
        os.close(fd)


class Region:
    """The observations of n environments in the server's memory: read-only, and overwritten by the next step.

    Args:
        told: from the reply to ``open``: ``path``, ``size``, floats of a ``row``, and where its parts begin (``at``).
        n: environments.
        space: the protocol's description of one environment's observation.

    Attributes:
        views: the whole batch: an array, or a map of arrays without the parts that are not in the memory.

    Raises:
        ProtocolError: the server's description is inconsistent, or the memory cannot be mapped.
    """

    def __init__(self, told: Mapping[str, Any], n: int, space: Any) -> None:
        size, row, at = told.get("size"), told.get("row"), told.get("at")
        if not isinstance(size, int) or not isinstance(row, int) or not isinstance(at, dict) or size != 4 * n * row:
            raise ProtocolError(f"open: {size!r} bytes of shared memory for {n} rows of {row!r} numbers")
        try:
            fd = _open(told.get("path"), size)
            try:
                memory = mmap.mmap(fd, size, prot=mmap.PROT_READ)
            finally:
                os.close(fd)
        except OSError as e:
            raise ProtocolError(f"open: the server's shared memory cannot be had: {e}") from e

        def part(start: object, shape: tuple[int, ...]) -> Array:
            if not isinstance(start, int) or not 0 <= start <= row - math.prod(shape):
                raise ProtocolError(f"open: {shape} numbers at {start!r} of a row of {row}")
            inner = [4 * math.prod(shape[i + 1 :]) for i in range(len(shape))]
            found: Array = np.ndarray((n, *shape), _FLOAT, memory, 4 * start, (4 * row, *inner))
            return found

        self.views: Any
        if at:
            shapes = {str(name): tuple(sub["shape"]) for name, sub in space["k"]}
            if not at.keys() <= shapes.keys():
                raise ProtocolError(f"open: {sorted(at)} in shared memory, want parts of {', '.join(shapes)}")
            self.views = {name: part(start, shapes[name]) for name, start in at.items()}
        else:
            self.views = part(0, (row,))

    def take(self, obs: Any, ids: Array | None) -> Any:
        """The observations of a reply.

        Args:
            obs: the part of them that is in the reply.
            ids: the environments that the reply is about, None = all.
        """
        views = self.views
        if ids is not None:
            views = {key: part[ids] for key, part in views.items()} if type(views) is dict else views[ids]
        if obs is None:
            return dict(views) if type(views) is dict else views
        if type(views) is not dict or type(obs) is not dict:
            raise ProtocolError("observations in shared memory and in the reply as well")
        return {**views, **obs}
