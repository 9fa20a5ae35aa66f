"""Simulations of a workload on a cluster, under schedulers in Python and the simulator's own: :func:`simulate`."""

from __future__ import annotations

import copy
import csv
import os
import queue as queues
import struct
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ._files import resolve
from ._session import Call, Session, request_head
from .client import Client
from .codec import array_prefix, encode
from .errors import BadKwargs, ProtocolError, SchedulerError, Unsupported
from .scheduler import Cluster, Columns, Jobs, Ledger, Scheduler, columns_of
from .table import Table

__all__ = ["Run", "Simulation", "simulate"]

_STATES = np.array(["finished", "unfinished", "dropped"], object)
# What gymctl sim prints of each run: the column, the path of the figure in the document of gymctl sim --json, and a factor.
_SHOWN: tuple[tuple[str, tuple[str, ...], float], ...] = (
    ("JCT mean (s)", ("jct_s", "mean"), 1), ("JCT p50 (s)", ("jct_s", "p50"), 1), ("JCT p90 (s)", ("jct_s", "p90"), 1),
    ("JCT p99 (s)", ("jct_s", "p99"), 1), ("wait mean (s)", ("wait_s", "mean"), 1),
    ("first wait (s)", ("first_wait_s", "mean"), 1), ("bounded slowdown", ("bounded_slowdown", "mean"), 1),
    ("makespan (s)", ("makespan_s",), 1), ("GPUs used (%)", ("gpu_utilization",), 100),
    ("preemptions", ("preemptions",), 1), ("finished", ("finished",), 1), ("unfinished", ("unfinished",), 1),
)  # fmt: skip


_IN_MEMORY = "jobs in memory"


class Run:
    """One policy on the workload.

    Attributes:
        policy: its name. seed: of noisy estimates, node failures and random placements.
        rung: what it may know of run times: none, submit-time, causal, noisy or exact. asks_nothing: it does not ask.
        metrics: the figures of ``gymctl sim --json`` by the same names: ``metrics["jct_s"]["mean"]``. Empty after an error.
        jobs: a row for each job that arrived and has left, in order of the trace, times in seconds since the trace's origin.
        points: how often the scheduler was asked.
        notes: sentences on what did not finish.
        error: why the simulation ended before its time, None = it did not.
    """

    def __init__(self, given: Scheduler | str, policy: str, seed: int, cluster: Cluster) -> None:
        self.policy = policy
        self.seed = seed
        self.rung = ""
        self.asks_nothing = False
        self.metrics: dict[str, Any] = {}
        self.points = 0
        self.notes: list[str] = []
        self.error: str | None = None
        self._given = given if isinstance(given, str) else policy
        self._scheduler = None if isinstance(given, str) else given
        self._cluster = cluster
        self._ledger = Ledger()
        self._guard: _Guard | None = None
        self._live = True
        self._jobs: Table | None = None

    @property
    def jobs(self) -> Table:
        if self._jobs is None:
            self._jobs = self._table()
        return self._jobs

    def _table(self) -> Table:
        ledger = self._ledger
        ended = np.concatenate(ledger.ended) if ledger.ended else np.empty((0, 10))
        ended = ended[np.argsort(ended[:, 0], kind="stable")]
        rows = ended[:, 0].astype(np.int64)
        submit, first, finish, ran, work = ledger.jobs[0][rows], ended[:, 1], ended[:, 2], ended[:, 3], ended[:, 4]
        jct = finish - submit
        counts = ended[:, 5:9].astype(np.int64)
        with np.errstate(divide="ignore", invalid="ignore"):
            slowdown = np.where(work > 0, jct / work, np.nan)
        share = ledger.jobs[1][rows] * ledger.jobs[2][rows]
        return Table({
            "job": rows, "id": ledger.text("id", rows), "user": ledger.text("user", rows), "vc": ledger.text("vc", rows),
            "gpus": share, "submit_s": submit, "first_start_s": first, "finish_s": finish, "run_s": work,
            "wait_s": jct - ran, "jct_s": jct, "slowdown": slowdown, "preemptions": counts[:, 0],
            "migrations": counts[:, 1], "resizes": counts[:, 2], "failures": counts[:, 3],
            "state": _STATES[ended[:, 9].astype(np.int64)],
        })  # fmt: skip

    def _take(self, entry: dict[str, Any]) -> None:
        self._ledger.take(entry)
        if "error" in entry:
            self._end(str(entry["error"]))
        elif "metrics" in entry:
            self.metrics, self._live = entry["metrics"], False
            self.notes = [str(note) for note in entry.get("notes") or ()]

    def _end(self, error: str) -> None:
        self.error, self._live = error, False

    def _answer(self, entry: dict[str, Any], limit_s: float | None) -> Columns:
        """What the scheduler decides at the point that the server shows.

        Raises:
            SchedulerError: it has raised, has taken too long, or has returned what is no decision.
        """
        scheduler, cluster, now = self._scheduler, self._cluster, float(entry["now"])
        assert scheduler is not None
        waiting = entry["queue"]
        cluster.take(entry)
        self.points += 1
        queue = Jobs(self._ledger, waiting.astype(np.intp), now, False)
        running = Jobs(self._ledger, entry["running"].astype(np.intp), now, True)
        try:
            if limit_s is None:
                return columns_of(scheduler.decide(now, queue, running, cluster))
            if self._guard is None:
                self._guard = _Guard(scheduler)
            return self._guard.decide(limit_s, now, queue, running, cluster)
        except Exception as e:
            what = "took longer than" if isinstance(e, _Slow) else "raised " + type(e).__name__ + ":"
            if isinstance(e, (TypeError, ValueError)) and str(e).startswith("got "):
                what = "decided what cannot be:"
            text = f"{type(scheduler).__name__}.decide at {now:.15g} s {what} {e}".rstrip(": ")
            raise SchedulerError(" ".join(text.split()), self.policy, now) from e

    def __repr__(self) -> str:
        if self.error is not None:
            return f"Run({self.policy}: {self.error})"
        jct = self.metrics.get("jct_s", {}).get("mean", float("nan"))
        return f"Run({self.policy}: JCT mean {jct:.6g} s over {self.metrics.get('finished', 0)} jobs)"


class _Slow(Exception):
    """A decision has taken too long."""


class _Guard:
    """Calls a scheduler in a thread of its own, so that a call that does not return can be left behind."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._asked: queues.SimpleQueue[tuple[Any, ...]] = queues.SimpleQueue()
        self._answers: queues.SimpleQueue[tuple[Columns | None, BaseException | None]] = queues.SimpleQueue()
        self._scheduler = scheduler
        threading.Thread(target=self._serve, daemon=True, name="clustergym-scheduler").start()

    def _serve(self) -> None:
        while args := self._asked.get():
            try:
                self._answers.put((columns_of(self._scheduler.decide(*args)), None))
            except BaseException as e:
                self._answers.put((None, e))

    def decide(self, limit_s: float, *args: Any) -> Columns:
        self._asked.put(args)
        try:
            columns, error = self._answers.get(timeout=limit_s)
        except queues.Empty:
            raise _Slow(f"{limit_s:g} s (limit_s)") from None
        if error is not None:
            raise error
        assert columns is not None
        return columns

    def end(self) -> None:
        """Lets the thread end, as soon as its call has returned."""
        self._asked.put(())


class Simulation(Sequence[Run]):
    """What :func:`simulate` has played. ``print`` shows a table; ``metrics`` and ``jobs`` are those of the only run.

    Attributes:
        runs: one for each policy and seed, in that order. workload: the jobs in a few words. cluster: the hardware.
        estimates: what policies know of run times, and why. refused: how many jobs can never fit the cluster and were left
            out. notes: sentences on what was left out.
    """

    def __init__(self, runs: list[Run], opened: Mapping[str, Any], told: Mapping[str, Any], memory: str) -> None:
        self.runs = runs
        self.workload = str(told.get("workload", "")).replace(memory, _IN_MEMORY)
        self.cluster = Cluster(opened["cluster"])
        self.estimates = str(opened.get("estimates_why", ""))
        self.refused = int(opened.get("refused", 0))
        self.notes = [str(note).replace(memory, _IN_MEMORY) for note in told.get("notes") or ()]

    def __len__(self) -> int:
        return len(self.runs)

    def __getitem__(self, index: Any) -> Any:
        """A run by its number or the name of its policy, as it was given or as it is in full."""
        if isinstance(index, str):
            for run in self.runs:
                if index in (run.policy, run._given):
                    return run
            raise KeyError(f"no policy {index!r}, there are {', '.join(run.policy for run in self.runs)}")
        return self.runs[index]

    def _only(self) -> Run:
        if len(self.runs) != 1:
            raise ValueError(
                f"there are {len(self.runs)} runs: choose one, as in result[0] or result[{self.runs[0].policy!r}]"
            )
        return self.runs[0]

    @property
    def metrics(self) -> dict[str, Any]:
        """The metrics of the only run."""
        return self._only().metrics

    @property
    def jobs(self) -> Table:
        """The jobs of the only run."""
        return self._only().jobs

    @property
    def table(self) -> Table:
        """A row for each run, with the figures that ``gymctl sim`` prints."""
        runs = self.runs
        columns: dict[str, Any] = {"policy": [run.policy for run in runs]}
        if len({run.seed for run in runs}) > 1:
            columns["seed"] = [run.seed for run in runs]
        for name, path, factor in _SHOWN:
            values = [_figure(run.metrics, path) for run in runs]
            if name == "unfinished" and not any(v is not None and v > 0 for v in values):
                continue
            scaled = [float("nan") if v is None else factor * v for v in values]
            whole = None not in values and all(isinstance(v, int) for v in values)
            columns[name] = np.asarray(values) if whole else np.asarray(scaled, np.float64)
        if any(run.error is not None for run in runs):
            columns["error"] = [run.error for run in runs]
        return Table(columns)

    def __str__(self) -> str:
        head = [f"workload   {self.workload}", f"cluster    {self.cluster.name}: {self.cluster.gpus} GPUs"]
        head.append(f"estimates  {self.estimates}")
        return "\n".join([*head, "", str(self.table), *self.notes, *(note for run in self.runs for note in run.notes)])

    def __repr__(self) -> str:
        return f"Simulation({', '.join(map(repr, self.runs))})"

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def _figure(metrics: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = metrics
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    return value


def simulate(
    trace: Any,
    cluster: Any,
    policy: Scheduler | str | Sequence[Scheduler | str],
    *,
    seed: int | Sequence[int] = 1,
    estimates: str | None = None,
    placement: str | None = None,
    horizon: float | str | None = None,
    warmup: int = 0,
    tail: int = 0,
    limit_s: float | None = None,
    url: str | None = None,
    token: str | None = None,
    timeout: float = 120.0,
    **settings: Any,
) -> Simulation:
    """Plays a workload on a cluster under a scheduler of your own, a rule of ``gymctl sim``, or several of them.

        >>> class Shortest(clustergym.Scheduler):
        ...     def decide(self, now, queue, running, cluster):
        ...         return clustergym.try_start(queue.job[np.argsort(queue.estimate_s)])
        >>> print(clustergym.simulate("jobs.csv", "8x4", [Shortest(), "sjf+skip"]))

    All policies are given the same jobs, estimates and GPUs. A scheduler that raises or decides what is impossible ends its
    run; so does the simulator's own error about it.

    Args:
        trace: the path of a file, ``"get:NAME"``, a map of the keys below ``trace`` of a configuration, or the jobs
            themselves: a DataFrame, or a list of maps, with the columns of the native format (``submit_time``,
            ``duration``, ``num_gpu``, …).
        cluster: as for an environment: ``"8x4"``, a preset, a path, or the keys of a cluster file as a map.
        policy: a scheduler, a rule as ``"sjf+skip"``, or several. Each run gets a copy of the scheduler.
        seed: of noisy estimates, failures and random placements; several give a run for each policy and seed.
        estimates: what policies know of run times: ``"trace"``, ``"history"``, ``"gbdt"``, ``"exact"``, ``"none"``,
            ``"noisy:SIGMA"``. None = requested times if all jobs have one, else history.
        placement: where jobs go for which a decision names no GPUs: ``"first-fit"`` by default.
        horizon: end after so many seconds, or a time such as ``"36h"``.
        warmup, tail: how many jobs at the beginning and the end are played and not counted.
        limit_s: seconds that one decision may take; None = any. With a limit, schedulers are called in threads of their own.
        url, token, timeout: as of :class:`clustergym.Client`.
        settings: further keys, as ``simulator={"restart": "5m"}`` (what stops cost, failures, communication).

    Raises:
        SchedulerError: the only scheduler has failed. With several runs, its row has the error instead.
        BadKwargs: an argument is wrong; the message says which, and what would be right.
    """
    policies = [policy] if isinstance(policy, (str, Scheduler, type)) else list(policy)
    for p in policies:
        if not isinstance(p, (str, Scheduler)):
            got = f"the class {p.__name__}: give an object of it" if isinstance(p, type) else repr(p)
            raise TypeError(
                f"policy: got {got}, want a clustergym.Scheduler, a rule such as 'sjf+skip', or several of them"
            )
        if p == "":
            raise ValueError("policy: got an empty text, want a rule such as 'sjf+skip'")
    seeds = [int(seed)] if isinstance(seed, (int, np.integer)) else [int(s) for s in seed]
    if not policies or not seeds:
        raise ValueError("policy, seed: got none, want at least one of each")
    parts = [(p, s) for p in policies for s in seeds]
    kwargs = {**settings, "cluster": cluster, "warmup": warmup, "tail": tail}
    if estimates is not None:
        kwargs["estimates"] = estimates
    if placement is not None:
        kwargs["placement"] = placement
    if horizon is not None:
        kwargs["horizon"] = horizon if isinstance(horizon, str) else f"{float(horizon):.9f}s"
    with Client(url, token=token, timeout=timeout) as client, _trace_of(trace, client) as named:
        plays = _Plays(client, {**kwargs, "trace": named}, parts)
        plays.play(limit_s)
        memory = str(named["file"]) if not isinstance(trace, (str, os.PathLike, Mapping)) else _IN_MEMORY
        return Simulation(plays.runs, plays.opened, plays.told, memory)


class _Plays:
    """The plays of one simulation, open on the server. They are lost with the session."""

    def __init__(self, client: Session, kwargs: dict[str, Any], parts: list[tuple[Scheduler | str, int]]) -> None:
        client.connect()
        if "schedule" not in client.features:
            raise Unsupported("unsupported", "this server lets no client schedule simulations", op="simulate")
        self.client = client
        self.last = 0
        plays: list[dict[str, Any]] = []
        for p, s in parts:
            plays.append(
                {"policy": p, "seed": s} if isinstance(p, str) else {"policy": "", "seed": s, "ask": p.ask_when}
            )
        fields = {"kwargs": resolve(kwargs, client.private), "plays": plays}
        opened = client.request("simulate", fields)
        self.h = opened.get("h")
        if not isinstance(self.h, int):
            raise ProtocolError(f"simulate: handle is {self.h!r}, want an integer")
        client.enter(self.h, self)
        self._head = request_head("decide", 2)
        self._start = encode("h") + encode(self.h) + encode("plays")
        self.opened = opened
        self.told: dict[str, Any] = {}
        self.runs: list[Run] = []
        hardware, told = opened["cluster"], opened["plays"]
        for (p, s), about in zip(parts, told):
            own = p if isinstance(p, str) else copy.deepcopy(p)
            name = str(about["policy"]) if isinstance(own, str) else own.name or type(own).__name__
            run = Run(own, name, s, Cluster(hardware))
            run.rung, run.asks_nothing = str(about["rung"]), bool(about["asks_nothing"])
            self.runs.append(run)

    @property
    def outstanding(self) -> int:
        """How many requests are unanswered."""
        return self.client.pending(self)

    def ensure(self) -> int:
        """The number of the plays."""
        assert isinstance(self.h, int)
        return self.h

    def play(self, limit_s: float | None) -> None:
        """Plays all of them to their ends."""
        try:
            for run in self.runs:
                if run._scheduler is not None:
                    self._reset(run)
            decisions: list[bytes] = []
            while decisions or any(run._live for run in self.runs):
                decisions = self._round(decisions, limit_s)
        finally:
            for run in self.runs:
                if run._guard is not None:
                    run._guard.end()
            self._close()

    def _reset(self, run: Run) -> None:
        assert run._scheduler is not None
        try:
            run._scheduler.reset(run._cluster, run.seed)
        except Exception as e:
            name = type(run._scheduler).__name__
            self._failed(run, SchedulerError(f"{name}.reset raised {type(e).__name__}: {e}", run.policy, 0.0))

    def _round(self, decisions: list[bytes], limit_s: float | None) -> list[bytes]:
        """Sends the decisions, and returns those at the next points."""
        tail = self._start + _list_head(len(decisions)) + b"".join(decisions)
        reply = self.client.ask(Call("decide", self._head, tail, self))
        self.told = reply
        answers = []
        for entry in reply["plays"]:
            run = self.runs[entry["play"]]
            if run._live:
                run._take(entry)
                if run.error is not None and len(self.runs) == 1:
                    raise SchedulerError(f"{run.policy}: {run.error}", run.policy, float(entry["now"]))
            if "queue" in entry:
                try:
                    answers.append(_packed(run._answer(entry, limit_s)) if run._live else _FAILED)
                except SchedulerError as e:
                    self._failed(run, e)
                    answers.append(_FAILED)
        return answers

    def _failed(self, run: Run, error: SchedulerError) -> None:
        """Ends a run whose scheduler has failed, or everything if there is no other."""
        if len(self.runs) == 1:
            raise error
        run._end(str(error))

    def _close(self) -> None:
        try:
            self.client.request("close", {"h": self.h}, timeout=min(5.0, self.client.timeout))
        except Exception:
            pass  # the end of the session closes them too


_OP, _JOB, _N, _AT, _GPUS, _UNTIL = map(encode, ("op", "job", "n", "at", "gpus", "until"))
_U1, _I4 = np.dtype("u1"), np.dtype("<i4")
_FAILED = encode({"op": [], "job": [], "failed": "the client's scheduler has failed"})
_EMPTY = b"\x82" + encode("op") + encode([]) + encode("job") + encode([])


def _list_head(n: int) -> bytes:
    return bytes((0x90 | n,)) if n < 16 else b"\xdc" + n.to_bytes(2, "big")


def _bytes(values: list[int]) -> bytes:
    return array_prefix(_U1, (len(values),)) + bytes(values)


def _ints(values: list[int]) -> bytes:
    return array_prefix(_I4, (len(values),)) + struct.pack(f"<{len(values)}i", *values)


def _packed(found: Columns) -> bytes:
    """Decisions as a map of the wire."""
    if not found.op and found.until is None:
        return _EMPTY
    parts = [_OP, _bytes(found.op), _JOB, _ints(found.job)]
    keys = 2
    if not found.plain:
        parts += [_N, _ints(found.n), _AT, _ints(found.at), _GPUS, _ints(found.gpus)]
        keys += 3
    if found.until is not None:
        parts += [_UNTIL, encode(found.until)]
        keys += 1
    return bytes((0x80 | keys,)) + b"".join(parts)


@contextmanager
def _trace_of(trace: Any, client: Session) -> Iterator[Any]:
    """The argument ``trace`` for the server. Jobs in memory become a file, which exists meanwhile."""
    if isinstance(trace, (str, os.PathLike, Mapping)):
        yield trace
        return
    frame = hasattr(trace, "columns") and (hasattr(trace, "to_csv") or hasattr(trace, "write_csv"))
    rows = isinstance(trace, Sequence) and all(isinstance(row, Mapping) for row in trace)
    if not frame and not rows:
        raise TypeError(
            f"trace: got a {type(trace).__name__}, want a path, a map of keys, a DataFrame or a list of maps"
        )
    if not len(trace):
        raise ValueError("trace: got no job")
    if not client.private:
        raise BadKwargs(
            "bad_kwargs",
            "argument trace: jobs in memory go to a server that this process starts, and url= or $CLUSTERGYM_URL names "
            "another one: write them to a file below its --trace-root",
            op="simulate",
        )
    with tempfile.TemporaryDirectory(prefix="clustergym-") as folder:
        path = Path(folder) / "jobs.csv"
        if rows:
            names = list(dict.fromkeys(name for row in trace for name in row))
            with path.open("w", newline="", encoding="utf-8") as out:
                writer = csv.DictWriter(out, names, restval="")
                writer.writeheader()
                writer.writerows(trace)
        elif hasattr(trace, "to_csv"):
            trace.to_csv(path, index=False)
        else:
            trace.write_csv(path)
        yield {"file": str(path)}
