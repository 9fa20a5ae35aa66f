"""Schedulers in Python: what one sees at a decision point, and what it may decide.

A :class:`Scheduler` sees every waiting and running job, by column, and the cluster. :func:`clustergym.simulate` plays it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from .codec import Array

__all__ = ["Cluster", "Decision", "Jobs", "Scheduler", "move", "resize", "start", "stop", "try_start", "wait"]

_START, _TRY, _STOP, _RESIZE, _MOVE, _WAIT = range(6)
_NAMES = ("start", "try_start", "stop", "resize", "move", "wait")
_MAX_JOB = (1 << 31) - 1

# The columns of the wire's table of jobs, in its order; see docs/reference/wire.md.
_COUNTS = {"gpus": 1, "min_gpus": 3, "max_gpus": 4, "priority": 5, "nodes": 6}
_TIMES = {"submit_s": 0, "gpu_share": 2, "estimate_s": 7, "estimate_q10_s": 8, "estimate_q25_s": 9, "estimate_q50_s": 10,
          "estimate_q75_s": 11, "estimate_q90_s": 12}  # fmt: skip
_TEXTS = {"id": 0, "user": 1, "vc": 2, "gpu_type": 3}
_JOB_COLUMNS = 13


class Decision:
    """One decision, made by :func:`start`, :func:`try_start`, :func:`stop`, :func:`resize`, :func:`move` or :func:`wait`."""

    __slots__ = ("gpus", "job", "n", "op", "until_s")

    def __init__(self, op: int, job: Any = None, gpus: Any = None, n: int = 0, until_s: float | None = None) -> None:
        self.op = op
        self.job = job
        self.gpus = gpus
        self.n = n
        self.until_s = until_s

    def __repr__(self) -> str:
        given = {name: getattr(self, name) for name in ("job", "n", "gpus", "until_s")}
        inner = ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None and value != 0)
        return f"{_NAMES[self.op]}({inner})"


def start(job: Any, gpus: Iterable[int] | None = None, n: int = 0) -> Decision:
    """Starts a waiting job now, or all jobs of an array in its order. It is an error if it does not fit.

    Args:
        job: from the column ``job`` of the queue.
        gpus: the numbers of the GPUs that it gets, all of them; None lets the simulator's placement choose.
        n: of an elastic job: on how many GPUs, 0 = as many as it asks for.
    """
    return Decision(_START, job, gpus, n)


def try_start(job: Any) -> Decision:
    """Starts a waiting job if it fits, or each of an array that fits, in its order."""
    return Decision(_TRY, job)


def stop(job: Any) -> Decision:
    """Takes the GPUs of a running job away, or of all jobs of an array. It waits again, from its last checkpoint."""
    return Decision(_STOP, job)


def resize(job: Any, n: int = 0, gpus: Iterable[int] | None = None) -> Decision:
    """Gives a running elastic job n GPUs, or those in gpus."""
    return Decision(_RESIZE, job, gpus, n)


def move(job: Any, gpus: Iterable[int]) -> Decision:
    """Moves a running job to other GPUs, as many as it has."""
    return Decision(_MOVE, job, gpus)


def wait(until_s: float) -> Decision:
    """Asks for another decision at this simulated time, in seconds, if nothing happens before."""
    return Decision(_WAIT, until_s=until_s)


class Ledger:
    """What is known of all jobs of a simulation, by position in the trace. It follows the server's replies."""

    def __init__(self) -> None:
        self.n = 0
        self.jobs = np.empty((_JOB_COLUMNS, 64))  # as the wire has them
        self.state = np.empty((4, 64))  # the rows below
        self._name_rows()
        self.texts: list[str] = []  # those of each job behind those of the one before
        self.where: dict[int, Array] = {}
        self.ended: list[Array] = []

    def _name_rows(self) -> None:
        self.start, self.ran, self.end, self.size = self.state

    def take(self, entry: dict[str, Any]) -> None:
        """Enters what has happened since the last reply."""
        jobs = entry.get("jobs")
        if jobs is not None:
            self._arrive(jobs, entry["text"])
        events = entry.get("events")
        if events is not None:
            self._follow(events, entry.get("gpus"))
        expects = entry.get("expects")
        if expects is not None:
            self.end[expects[:, 0].astype(np.int64)] = expects[:, 1]
        ended = entry.get("ended")
        if ended is not None:
            self.ended.append(ended)
            if self.where:
                for job in ended[:, 0].astype(int).tolist():
                    self.where.pop(job, None)

    def _arrive(self, jobs: Array, texts: list[str]) -> None:
        first, last = self.n, self.n + len(jobs)
        if last > self.state.shape[1]:
            size = max(last, 2 * self.state.shape[1])
            self.jobs, self.state = _grown(self.jobs, first, size), _grown(self.state, first, size)
            self._name_rows()
        self.n = last
        self.jobs[:, first:last] = jobs.T
        self.state[:, first:last] = _ARRIVED
        self.texts += texts

    def text(self, name: str, rows: Array) -> Array:
        """A column of texts for jobs."""
        column = np.empty(len(rows), object)
        column[:] = [self.texts[len(_TEXTS) * row + _TEXTS[name]] for row in rows.tolist()]
        return column

    def _follow(self, events: Array, gpus: Array | None) -> None:
        at = 0
        for kind, position, when, ran, end, n in events.tolist():
            job = int(position)
            self.ran[job], self.end[job] = ran, end
            if kind == 2:  # stopped
                self.start[job], self.size[job] = math.nan, 0
                self.where.pop(job, None)
                continue
            if kind == 1:
                self.start[job] = when
            self.size[job] = count = int(n)
            if gpus is not None:
                # Jobs without GPUs have a place of their own on a node.
                count = max(count, 1)
                self.where[job] = gpus[at : at + count]
                at += count


# Of a job that has not run: no start, no time on GPUs, no expected end, no GPUs.
_ARRIVED = np.array([[math.nan], [0.0], [math.nan], [0.0]])


def _grown(table: Array, n: int, size: int) -> Array:
    """A table of so many columns that begins with the first n of an old one."""
    new = np.empty((len(table), size))
    new[:, :n] = table[:, :n]
    return new


class Jobs:
    """Waiting or running jobs, in order of the trace, by column: ``queue.gpus`` or ``queue["gpus"]``.

    A column is a NumPy array with one entry for each job, made when it is first asked for. ``queue[mask]`` and
    ``queue[indices]`` choose jobs, ``np.asarray(queue)`` is a structured array of all columns, and ``queue.columns`` lists
    their names. What is not known is NaN, or an empty text.

    Attributes:
        job: the number by which decisions name the job: its position in the trace among the jobs that fit the cluster.
        id, user, vc: as in the trace. gpu_type: the types of GPU that it takes, joined by ``|``; empty = any.
        submit_s: when it was submitted. waited_s: for how long it has had no GPUs since.
        gpus: of queue: how many it asks for; of running: how many it has. gpu_share: of each, 1 = the whole.
        min_gpus, max_gpus: the range of an elastic job, 0 = it is not elastic. nodes: on how many it ran or asks to run.
        priority: as in the trace.
        estimate_s: what is expected of its run time, as the estimates have it. estimate_q10_s, estimate_q25_s,
            estimate_q50_s, estimate_q75_s, estimate_q90_s: quantiles, if they are forecasts.
        ran_s: for how long it has had GPUs.
        start_s: when it was last started. left_s: for how long it is expected to run still. where: its GPUs, an array of
            numbers for each job. These are columns of running alone.
    """

    _QUEUE = ("job", *_TEXTS, "submit_s", "waited_s", *_COUNTS, *(c for c in _TIMES if c != "submit_s"), "ran_s")
    _RUNNING = (*_QUEUE, "start_s", "left_s", "where")

    def __init__(self, ledger: Ledger, rows: Array, now: float, running: bool) -> None:
        self._ledger = ledger
        self._now = now
        self._running = running
        self.job = rows

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._RUNNING if self._running else self._QUEUE

    def __len__(self) -> int:
        return len(self.job)

    def __getattr__(self, name: str) -> Any:
        # Called for columns that were not asked for before.
        if name.startswith("_"):
            raise AttributeError(name)
        column = self._column(name)
        self.__dict__[name] = column
        return column

    def _column(self, name: str) -> Any:
        ledger, rows = self._ledger, self.job
        if name in _TIMES:
            return ledger.jobs[_TIMES[name]].take(rows)
        if name in _COUNTS:
            counts = ledger.size if name == "gpus" and self._running else ledger.jobs[_COUNTS[name]]
            return counts.take(rows).astype(np.int64)
        if name in _TEXTS:
            return ledger.text(name, rows)
        if name == "ran_s":
            ran = ledger.ran.take(rows)
            return ran + (self._now - ledger.start.take(rows)) if self._running else ran
        if name == "waited_s":
            return self._now - self.submit_s - self.ran_s
        if self._running:
            if name == "start_s":
                return ledger.start.take(rows)
            if name == "left_s":
                return np.maximum(ledger.end.take(rows) - self._now, 0.0)
            if name == "where":
                where = np.empty(len(rows), object)
                where[:] = [ledger.where.get(job, _NOWHERE) for job in rows.tolist()]
                return where
        raise AttributeError(f"no column {name!r}, there are {', '.join(self.columns)}")

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self.columns:
                raise KeyError(f"no column {key!r}, there are {', '.join(self.columns)}")
            return getattr(self, key)
        rows = self.job[key]
        if rows.ndim != 1:
            rows = rows.reshape(-1)
        return Jobs(self._ledger, rows, self._now, self._running)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        columns = [self[name] for name in self.columns]
        layout = [(name, column.dtype) for name, column in zip(self.columns, columns)]
        table = np.empty(len(self), layout)
        for name, column in zip(self.columns, columns):
            table[name] = column
        return table if dtype is None else table.astype(dtype)

    def __repr__(self) -> str:
        return f"Jobs({len(self)} {'running' if self._running else 'waiting'})"


_NOWHERE = np.empty(0, np.int32)


class Cluster:
    """The hardware, and what of it is free. GPUs and nodes are known by numbers from 0; those of a node follow each other.

    Attributes:
        name: of the cluster. gpus: how many it has. types: the types of its GPUs.
        free: how many GPUs are free, shares of GPUs included.
        gpu_node: the node of each GPU. gpu_free: the free share of each GPU, 0 to 1; 0 of a node that is down.
        node_name, node_gpus, node_rack, node_type: of each node; the type is a number of ``types``.
        node_free: how many GPUs of each node are wholly free.
        down: whether each node is down.

    A cluster that is a plain counter of GPUs (``pool:N``) has no nodes: its arrays are empty.
    """

    def __init__(self, hardware: dict[str, Any]) -> None:
        self.name = str(hardware.get("name", ""))
        self.gpus = int(hardware["gpus"])
        self.types = [str(t) for t in hardware.get("types") or ()]
        self.node_name = [str(n) for n in hardware.get("nodes") or ()]
        self.node_gpus: Array = hardware.get("node_gpus", _NOWHERE)
        self.node_rack: Array = hardware.get("node_rack", _NOWHERE)
        self.node_type: Array = hardware.get("node_type", _NOWHERE)
        self.gpu_node = np.repeat(np.arange(len(self.node_gpus)), self.node_gpus)
        self.free = float(self.gpus)
        self._milli = np.full(len(self.gpu_node), 1000, np.int16)

    def take(self, entry: dict[str, Any]) -> None:
        """Enters what is free now."""
        self.free = entry["idle"]
        self._milli = entry.get("free", self._milli)

    @property
    def gpu_free(self) -> Array:
        return np.maximum(self._milli, 0) / 1000

    @property
    def node_free(self) -> Array:
        return np.bincount(self.gpu_node[self._milli == 1000], minlength=len(self.node_gpus))

    @property
    def down(self) -> Array:
        return np.bincount(self.gpu_node[self._milli < 0], minlength=len(self.node_gpus)) > 0

    def __repr__(self) -> str:
        return f"Cluster({self.name}: {self.free:g} of {self.gpus} GPUs free)"


class Scheduler:
    """A scheduler of your own: override :meth:`decide`.

    Attributes:
        name: of its rows in tables; by default that of the class.
        ask_when: ``"waiting"``: after an event, where a job waits. ``"room"``: only where one waits that fits, which saves
            time if the scheduler stops no job. ``"always"``: after every event, as schedulers that resize or move jobs want.
    """

    name: str = ""
    ask_when: str = "waiting"

    def reset(self, cluster: Cluster, seed: int) -> None:
        """Called once before a simulation. Random numbers should follow from seed alone."""

    def decide(self, now: float, queue: Jobs, running: Jobs, cluster: Cluster) -> Any:
        """Decides what happens at this point, after a job has arrived or ended.

        Args:
            now: simulated seconds since the trace's origin.
            queue: the jobs that wait. running: those that run. cluster: what is free.

        Returns:
            A decision, an iterable of decisions, which are made in order, or None for none. The next point comes with the
            next event.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method decide(now, queue, running, cluster)")


class Columns:
    """Decisions by column, as the wire has them."""

    def __init__(self) -> None:
        self.op: list[int] = []
        self.job: list[int] = []
        self.n: list[int] = []
        self.at: list[int] = []
        self.gpus: list[int] = []
        self.until: float | None = None
        self.plain = True  # neither n nor GPUs are named

    def add(self, decision: Any) -> None:
        """Adds a decision.

        Raises:
            TypeError, ValueError: it is none, or its job, GPUs or time cannot be meant.
        """
        if type(decision) is not Decision:
            raise TypeError(f"got {_short(decision)}, want decisions such as clustergym.start(job)")
        if decision.op == _WAIT:
            until = decision.until_s
            if not isinstance(until, (int, float, np.integer, np.floating)) or not math.isfinite(until):
                raise ValueError(f"got wait({_short(until)}), want a time in seconds")
            self.until = float(until) if self.until is None else min(self.until, float(until))
            return
        jobs = decision.job
        numbers = [_whole(j, "job") for j in jobs.reshape(-1).tolist()] if isinstance(jobs, np.ndarray) else None
        if numbers is None:
            numbers = [_whole(jobs, "job")]
        gpus: list[int] = []
        if decision.gpus is not None:
            gpus = [_whole(g, "GPU") for g in decision.gpus]
            if len(numbers) != 1:
                raise ValueError(
                    f"got GPUs for {len(numbers)} jobs, want one decision for each job that names its GPUs"
                )
        n = _whole(decision.n, "number of GPUs")
        self.op += [decision.op] * len(numbers)
        self.job += numbers
        self.n += [n] * len(numbers)
        self.at += [len(gpus)] * len(numbers)
        self.gpus += gpus
        if n or gpus:
            self.plain = False


def columns_of(returned: Any) -> Columns:
    """What a scheduler has returned, by column.

    Raises:
        TypeError, ValueError: it is not what :meth:`Scheduler.decide` may return.
    """
    found = Columns()
    if returned is None:
        return found
    if type(returned) is Decision:
        found.add(returned)
        return found
    if isinstance(returned, (str, bytes)) or not isinstance(returned, Iterable):
        raise TypeError(f"got {_short(returned)}, want decisions such as clustergym.start(job)")
    for decision in returned:
        found.add(decision)
    return found


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _whole(value: Any, what: str) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        if not (isinstance(value, float) and value.is_integer()):
            raise TypeError(f"got {_short(value)} as a {what}, want a whole number") from None
        number = int(value)
    if not 0 <= number <= _MAX_JOB:
        raise ValueError(f"got {number} as a {what}, want 0 to {_MAX_JOB}")
    return number
