"""Agents that ``gymctl train`` has trained, as policies in Python.

``gymctl ckpt act`` computes the actions, so they are those of ``gymctl eval``, bit for bit, whatever the network.
"""

from __future__ import annotations

import json
import math
import os
import struct
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ._child import Child
from .errors import ClusterGymError, GymctlError

if TYPE_CHECKING:
    from gymnasium import spaces

__all__ = ["Policy", "load"]

_MOST_ROWS = 1 << 12  # of one request
_MASK = "action_mask"

Array = npt.NDArray[Any]


def load(run: str | os.PathLike[str], *, gymctl: str | None = None) -> Policy:
    """The agent of a run, as a policy.

    Args:
        run: a run directory of ``gymctl train`` (its best checkpoint, else its newest), or a checkpoint.
        gymctl: the program that computes the actions, None = that of :func:`clustergym.find_gymctl`.

    Raises:
        GymctlError: there is no such run, or it is damaged; the message is gymctl's.
    """
    return Policy(run, gymctl=gymctl)


class Policy:
    """A checkpoint that acts greedily. It has the method ``predict`` of Stable-Baselines3's models.

    Safe to use from several threads. It runs a ``gymctl ckpt act``, which ends with :meth:`close`, with this object, and with
    this process; after a fork, and in another process after pickling, it runs another one.

    Attributes:
        run: the path of the run or checkpoint.
        env_id: the environment that it was trained in.
        name: agent, run and step, as in the table of ``gymctl eval``.
        fields: the fields of an observation with their shapes, in the order of a flat one.
    """

    def __init__(self, run: str | os.PathLike[str], *, gymctl: str | None = None) -> None:
        self.run = os.path.abspath(os.path.expanduser(os.fspath(run)))
        self._gymctl = gymctl
        self._begin()
        with self._lock:
            about = self._start()
        self.env_id: str = about["env"]
        self.name: str = about["name"]
        self.fields: dict[str, tuple[int, ...]] = {field["name"]: tuple(field["shape"] or ()) for field in about["obs"]}
        self._sizes: list[int] = about["sizes"] or []
        self._low = np.array(about["low"] or [], np.float32)
        self._high = np.array(about["high"] or [], np.float32)
        self._length = sum(math.prod(shape) for shape in self.fields.values())

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._owner = os.getpid()
        self._closed = False

    def _start(self) -> dict[str, Any]:
        self._child = child = Child(["ckpt", "act", self.run], self._gymctl)
        assert child.process.stdout is not None
        line = child.process.stdout.readline()
        if not line:
            raise GymctlError(f"load: {self._end()}")
        about: dict[str, Any] = json.loads(line)
        return about

    @property
    def observation_space(self) -> spaces.Dict:
        """The observations that it was trained on. :meth:`predict` takes flat ones too."""
        from gymnasium import spaces

        return spaces.Dict({
            name: spaces.Box(-np.inf, np.inf, shape, np.float32) for name, shape in self.fields.items()
        })  # fmt: skip

    @property
    def action_space(self) -> spaces.Space[Any]:
        """The actions that :meth:`predict` returns."""
        from gymnasium import spaces

        if len(self._low):
            if self._sizes:
                raise ClusterGymError(f"{self.env_id} has discrete and continuous actions at once")
            return spaces.Box(self._low, self._high, dtype=np.float32)
        return spaces.Discrete(self._sizes[0]) if len(self._sizes) == 1 else spaces.MultiDiscrete(self._sizes)

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
        action_masks: Any = None,
    ) -> tuple[Any, Any]:
        """The actions for one observation or a batch of them, and ``state``, which it does not use.

        Args:
            observation: a map of its fields, or a flat one with the fields one after the other.
            deterministic: it takes the best action always; False is an error.
            action_masks: the legal actions, bool [actions] or [batch, actions]. None takes the field ``action_mask`` of the
                observation, else all actions are legal.

        Raises:
            ValueError: an observation or a mask of another shape.
            ClusterGymError: there is no legal action, or the program has ended.
        """
        if not deterministic:
            raise ValueError("deterministic is False: a checkpoint plays greedily; want True")
        rows, single, masks = self._rows(observation)
        n, actions = len(rows), sum(self._sizes)
        given = masks if action_masks is None else action_masks
        legal = np.ones((n, actions), np.uint8) if given is None else np.asarray(given) != 0
        if legal.shape != (n, actions) and not (single and legal.shape == (actions,)):
            raise ValueError(f"action_masks has shape {legal.shape}, want {(actions,) if single else (n, actions)}")
        legal = np.ascontiguousarray(legal.reshape(n, actions), np.uint8)
        parts = [self._ask(rows[i : i + _MOST_ROWS], legal[i : i + _MOST_ROWS]) for i in range(0, n, _MOST_ROWS)]
        chosen = np.concatenate(parts)
        if len(self._sizes) == 1 and not len(self._low):
            chosen = chosen[:, 0]
        return (chosen[0] if single else chosen), state

    def _rows(self, observation: Any) -> tuple[Array, bool, Any]:
        """The observations as rows of a flat array, whether it is a single one, and the masks that came with them."""
        if not isinstance(observation, Mapping):
            flat = np.asarray(observation, np.float32)
            if flat.shape[-1:] != (self._length,) or flat.ndim not in (1, 2):
                raise ValueError(
                    f"an observation of shape {flat.shape}, want {(self._length,)} or a batch of them: is it of "
                    f"{self.env_id}, with the arguments of the run?"
                )
            return np.ascontiguousarray(flat.reshape(-1, self._length)), flat.ndim == 1, None
        columns, batches = [], set()
        for name, shape in self.fields.items():
            if name not in observation:
                raise ValueError(f"an observation without {name!r}, want {', '.join(self.fields)}")
            column = np.asarray(observation[name], np.float32)
            batch = column.shape[: column.ndim - len(shape)]
            if batch + shape != column.shape or len(batch) > 1:
                raise ValueError(f"the field {name!r} has shape {column.shape}, want {shape} or a batch of them")
            columns.append(column.reshape(*batch, -1))
            batches.add(batch)
        if len(batches) != 1:
            raise ValueError(f"fields of batches of different sizes: {sorted(batches)}")
        single = batches == {()}
        rows = np.atleast_2d(np.concatenate(columns, axis=-1))
        return np.ascontiguousarray(rows), single, observation.get(_MASK) if _MASK not in self.fields else None

    def _ask(self, rows: Array, legal: Array) -> Array:
        request = struct.pack("<I", len(rows)) + rows.astype("<f4", copy=False).tobytes() + legal.tobytes()
        lock = self._lock if self._owner == os.getpid() else self._forked()
        with lock:
            if self._closed:
                raise ClusterGymError("the policy is closed")
            if self._child is None:
                self._start()
            try:
                return self._exchange(request, len(rows))
            except OSError as e:
                raise ClusterGymError(f"gymctl ckpt act has ended: {self._end() or e}") from e
            except ClusterGymError:
                raise
            except BaseException:
                self._end()  # an interrupt may have left half a reply behind: the next call starts anew
                raise

    def _exchange(self, request: bytes, n: int) -> Array:
        assert self._child is not None
        stdin = self._child.process.stdin
        assert stdin is not None
        stdin.write(request)
        stdin.flush()
        (got,) = struct.unpack("<I", self._read(4))
        if got == 0:
            (length,) = struct.unpack("<I", self._read(4))
            raise ClusterGymError(f"predict: {self._read(length).decode('utf-8', 'replace')}")
        indices = np.frombuffer(self._read(4 * n * len(self._sizes)), "<i4").reshape(n, -1).astype(np.int64)
        numbers = np.frombuffer(self._read(4 * n * len(self._low)), "<f4").reshape(n, -1).astype(np.float32)
        if not len(self._low):
            return indices
        return numbers if not self._sizes else np.concatenate([indices, numbers], axis=1)

    def _read(self, size: int) -> bytes:
        assert self._child is not None
        stdout = self._child.process.stdout
        assert stdout is not None
        data = stdout.read(size)
        if len(data) != size:
            raise OSError("its output ended")
        return data

    def _forked(self) -> threading.Lock:
        """The lock of a child, which leaves the parent's program to the parent."""
        if self._child is not None:
            self._child.close()
        self._begin()
        return self._lock

    def _end(self) -> str:
        """Ends the program; returns what it said last."""
        child, self._child = self._child, None
        if child is None:
            return ""
        try:
            child.end()
            return child.sentence()
        finally:
            child.close()

    def close(self) -> None:
        """Ends the program. Harmless if called twice."""
        if self._owner != os.getpid():
            self._forked()
        with self._lock:
            self._closed = True
            self._end()

    def __enter__(self) -> Policy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            self.close()
        except BaseException:
            pass

    def __repr__(self) -> str:
        return f"<clustergym.Policy {self.name} of {self.env_id}>"

    def __getstate__(self) -> dict[str, Any]:
        return {"run": self.run, "gymctl": self._gymctl}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]
