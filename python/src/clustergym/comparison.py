"""A policy of yours next to heuristics, on the same held-out jobs: ``gymctl eval`` in one call."""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from ._child import Child
from ._files import resolve
from ._playing import Player
from ._secrets import token_file
from .errors import ClusterGymError, GymctlError
from .evaluation import play

__all__ = ["Row", "Table", "compare"]

#: The environment that is played where none is named, as by ``gymctl eval`` and ``gymctl train``. A test compares them.
DEFAULT_ENV = "JobSelect-v2"

_MASK = "action_mask"
# Arguments of RemoteEnv and the adapters, which say how a policy sees an environment and not what the environment is.
_VIEW = frozenset({
    "env_id", "num_envs", "timeout", "autoreset_mode", "render_mode", "obs", "mask", "invalid", "penalty", "info", "recv",
    "batch", "copy", "vectorization_mode",
})  # fmt: skip
_ELSEWHERE = ("url", "token", "client", "client_options")


@dataclass(frozen=True)
class Row:
    """One policy of a comparison.

    Attributes:
        name: as in ``policies``, or the name of the model.
        kind: ``"external"`` (the model), ``"checkpoint"``, ``"heuristic"`` or ``"slots"``.
        metrics: the mean of each metric over the windows or streams, by the names of ``gymctl eval --json``: ``jct_s``,
            ``wait_s``, ….
        per_window: the values of ``metric`` in each window or stream.
        metric: what policies are compared by: ``"jct_s"``, or the environment's own.
        difference: by how many percent the model's metric is above this policy's, on the same jobs. None for the model.
        interval: the 95 % interval of difference. None where there are too few streams or blocks for one.
        win_rate: the share of windows in which the model is better, ties count half. None on streams.
        ci: on streams, the 95 % interval of the mean of ``metric``. None where there are too few.
        verdict: on streams, whether the model is ``"ahead"`` of this policy, ``"behind"`` it, ``"cannot be told apart"`` from
            it, or there are ``"too few units"``; for all policies of the table together. None for the model.
        keeps_up: False for a policy whose backlog grows as long as jobs arrive: its mean grows with the length of streams.
        trained_on: the estimates of run times with which a checkpoint was trained. None for other policies.
        asks_nothing: whether it does not ask for run times, so that it is the same on every rung.
        greedy: the rule by which an agent of gymctl chooses its actions, where it is not the usual one of its kind.
    """

    name: str
    kind: str
    metrics: dict[str, float]
    per_window: list[float]
    metric: str
    difference: float | None = None
    interval: tuple[float, float] | None = None
    win_rate: float | None = None
    trained_on: str | None = None
    asks_nothing: bool = False
    greedy: str | None = None
    ci: tuple[float, float] | None = None
    verdict: str | None = None
    keeps_up: bool = True


@dataclass(frozen=True)
class Table(Sequence[Row]):
    """The rows of a comparison, the model's first. ``print`` shows it as a table.

    Attributes:
        document: what ``gymctl eval --json`` has printed.
    """

    rows: list[Row]
    document: dict[str, Any] = field(repr=False)

    @property
    def estimates(self) -> str:
        """What the policies know of run times: the environment's argument ``estimates``."""
        return str(self.document.get("estimates", ""))

    @property
    def rung(self) -> str:
        """The rung of :attr:`estimates`: none, submit-time, causal, noisy or exact. Only policies of one rung compare."""
        return str(self.document.get("rung", ""))

    @property
    def streams(self) -> dict[str, Any] | None:
        """What was played in place of windows: ``units``, ``warm_jobs``, ``counted_jobs``, …. None = windows were."""
        return self.document.get("streams") if self.document.get("protocol") == "streams" else None

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        """A row by its number or the name of its policy."""
        if isinstance(index, str):
            for row in self.rows:
                if row.name == index:
                    return row
            raise KeyError(f"no policy {index!r}, there are {', '.join(row.name for row in self.rows)}")
        return self.rows[index]

    def __str__(self) -> str:
        model = self.rows[0]
        what = "JCT" if model.metric == "jct_s" else model.metric
        factor, unit = _unit(model.metric, [float(np.mean(row.per_window)) for row in self.rows])
        last = f"{model.name} wins" if self.streams is None else "verdict"
        lines = [["policy", f"mean {what}", "bounded slowdown", f"{model.name} differs by [95 %]", last]]
        for row in self.rows:
            paired = ["", ""]
            if row.difference is not None:
                paired[0] = f"{row.difference:+.1f} %"
                if row.interval is not None:
                    paired[0] += f" [{row.interval[0]:+.1f}, {row.interval[1]:+.1f}]"
                paired[1] = row.verdict or (f"{100 * row.win_rate:.0f} %" if row.win_rate is not None else "")
            mean = float(np.mean(row.per_window))
            value = f"{mean * factor:.4g}{unit}"
            if row.ci is not None:
                value = f"{mean * factor:.4g} [{row.ci[0] * factor:.4g}, {row.ci[1] * factor:.4g}]{unit}"
            name = row.name if row.keeps_up else f"{row.name} (does not keep up)"
            if row.trained_on is not None and row.trained_on != self.estimates:
                name += f" (trained on {row.trained_on})"
            lines.append([name, value, f"{row.metrics.get('bounded_slowdown', math.nan):.2f}", *paired])
        widths = [max(len(line[i]) for line in lines) for i in range(5)]
        text = [
            "  ".join(
                cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths))
            ).rstrip()
            for line in lines
        ]
        text.insert(1, "  ".join("-" * w for w in widths))
        if self.estimates:
            known = self.estimates if self.estimates.startswith(self.rung) else f"{self.estimates} ({self.rung})"
            text[:0] = [f"estimates: {known}", ""]
        text += ["", *self._below(model, what)]
        nothing = [row.name for row in self.rows if row.asks_nothing]
        if nothing:
            asks = " asks" if len(nothing) == 1 else " ask"
            text.append(
                " and ".join(filter(None, [", ".join(nothing[:-1]), nothing[-1]])) + asks + " nothing of run times."
            )
        return "\n".join(text)

    def _below(self, model: Row, what: str) -> list[str]:
        differs = f"{model.name} differs by: its mean {what} over the policy's, with the paired 95 % interval"
        played = self.streams
        if played is None:
            return [
                f"{len(model.per_window)} windows, the same for all. {differs};",
                "it wins a window in which it is better (ties count half).",
            ]
        units = f"{played['units']} {'blocks' if played.get('blocks') else 'draws'}"
        text = [
            f"{units}, the same for all, {played['counted_jobs']} counted jobs after {played['warm_jobs']} of warm-up.",
            f"{differs}.",
            f"Verdicts: whether {model.name} is ahead of the policy or behind it, at 5 % for all policies together (Holm).",
        ]
        if any(row.verdict == "too few units" for row in self.rows):
            text.append(f"{units} are too few for intervals and verdicts, which need 10.")
        return text


def _unit(metric: str, values: Sequence[float]) -> tuple[float, str]:
    """The factor and the unit in which values of a metric are shown."""
    if not metric.endswith("_s"):
        return 1.0, ""
    middle = float(np.median(values))
    return (1 / 3600, " h") if middle >= 3600 else (1 / 60, " min") if middle >= 120 else (1.0, " s")


def compare(
    model: Any,
    env_kwargs: Mapping[str, Any] | None = None,
    *,
    env: str | None = None,
    policies: Sequence[str] | None = None,
    checkpoints: Sequence[str | os.PathLike[str]] = (),
    windows: int | None = None,
    draws: int | None = None,
    jobs: int | None = None,
    seeds: int = 1,
    name: str = "model",
    obs: str | None = None,
    reset: Callable[[], None] | None = None,
    transform: Any = None,
    show: bool = True,
    timeout: float = 60.0,
    gymctl: str | None = None,
) -> Table:
    """Plays held-out jobs of a workload with a model and with other policies, and compares them.

    Policies play streams of jobs, in which thousands of decisions may follow each other; in environments of version 1, and
    with ``windows``, they play short windows, each on a cluster without a queue.

    Args:
        model: one with the method ``predict`` of Stable-Baselines3, masked or not (:func:`clustergym.load` gives one too), or
            a function that takes an observation and the mask of legal actions, bool [actions], and returns an action. A model
            sees what it learned from: ``VecNormalize`` and other wrappers around its environment are put around the
            evaluation too, with the statistics of the training. A function gets what the environment gives.
        env_kwargs: the arguments of the environment that the model was trained in, as :class:`~clustergym.RemoteEnv` takes
            them. Those that say only how it is seen (``obs``, ``mask``, ``num_envs``, …) do not count.
        env: the environment's id; None = that of the argument ``preset``, else JobSelect-v2, as everywhere.
        policies: what it is compared with, as ``gymctl eval --policies`` names them; None = the environment's rivals.
        checkpoints: runs of ``gymctl train`` that play too.
        windows: at most so many windows of the workload's test part, in place of streams. None = 32 in environments of
            version 1, else streams.
        draws: how many independent draws of a generated workload; None = 16.
        jobs: how many jobs count in each draw; None = 2000.
        seeds: how often policies that draw at random play each window or stream.
        name: what the model is called.
        obs: the view of observations, ``"dict"`` or ``"flat"``; None = that of ``model.observation_space``, else that of
            env_kwargs, else that of :class:`~clustergym.RemoteEnv`.
        reset: called before each window or stream, for models with a memory.
        transform: what is done to observations before the model gets them, in place of what is around its own environment: a
            ``VecNormalize``, the file that its ``save`` has written (a pickle: open none of strangers), a function of an
            observation, or False for nothing.
        show: print the table.
        timeout: seconds that any wait for an answer may last while the model plays.
        gymctl: the program to start, None = that of :func:`clustergym.find_gymctl`.

    Raises:
        GymctlError: ``gymctl eval`` has refused the arguments, or has failed; the message is its own.
        ClusterGymError: the model does not fit the environment, has lost the statistics of its VecNormalize, or left windows
            unfinished.
    """
    player = Player(model, transform)
    space = player.given
    if obs is None:
        given = (env_kwargs or {}).get("obs")
        obs = "flat" if isinstance(space, spaces.Box) else "dict" if isinstance(space, spaces.Dict) else given
    seen = ["info", "obs"] if isinstance(space, spaces.Dict) and _MASK in space.spaces else ["info"]
    token = secrets.token_hex(32)
    with tempfile.TemporaryDirectory(prefix="clustergym-compare-") as folder, token_file(token) as tokens:
        args = ["eval", *_config(env or DEFAULT_ENV, env_kwargs or {}, Path(folder)), "--seeds", str(seeds)]
        for flag, value in {"--windows": windows, "--draws": draws, "--jobs": jobs}.items():
            if value is not None:
                args += [flag, str(value)]
        if policies is not None:
            args += ["--policies", ",".join(policies)]
        for run in checkpoints:
            args += ["--checkpoint", os.path.abspath(os.path.expanduser(os.fspath(run)))]
        args += ["--no-whole", "--json", "--serve", "127.0.0.1:0", "--token-file", tokens, "--external", name]
        # It ends when this process does, and else waits for as long as the model thinks.
        child = Child([*args, "--external-timeout", "8760h", "--until-eof"], gymctl, keep=True)
        try:
            url = _address(child, folder)
            try:
                play(player, url, name, token=token, timeout=timeout, obs=obs, mask=seen, reset=reset)
            except ClusterGymError as e:
                try:
                    code = child.process.wait(1)
                except subprocess.TimeoutExpired:
                    raise e from None
                if code != 0:
                    raise GymctlError(_said(child, folder)) from e
                # It has all windows: the others have nothing to decide.
            if child.process.wait() != 0:
                raise GymctlError(_said(child, folder))
            document = json.loads(child.output())
            played = document.get("env", "JobSelect-v1")
            if env is not None and played != env:
                raise ValueError(f"preset is of {played}, want one of {env}")
        finally:
            child.close()
    table = Table(_rows(document, name), document)
    if show:
        print(table)
    return table


def _config(env: str, kwargs: Mapping[str, Any], folder: Path) -> list[str]:
    """The flags of ``gymctl eval`` for an environment with arguments as clients have them."""
    own: dict[str, Any] = {}
    for key, value in kwargs.items():
        if key == "kwargs" and isinstance(value, Mapping):
            own.update(value)
        elif key in _ELSEWHERE and value is not None:
            raise ValueError(f"{key}: compare plays on this machine, in a gymctl of its own")
        elif key not in _VIEW and key not in _ELSEWHERE:
            own[key] = value
    flat: dict[str, Any] = {}
    _flatten(resolve(own, True), "", flat)
    preset, split = flat.pop("preset", None), flat.pop("split", "test")
    if split not in ("train", "test"):
        raise ValueError(f"split is {split!r}: compare plays the test part of the workload")
    if isinstance(flat.get("cluster"), Mapping):
        file = folder / "cluster.yaml"
        file.write_text(json.dumps(flat["cluster"], default=_plain), encoding="utf-8")
        flat["cluster"] = str(file)
    keys = {key if key == "cluster" or key.startswith("trace.") else f"env.{key}": value for key, value in flat.items()}
    if preset:
        flags = ["-c", str(preset)]
        for key, value in keys.items():
            flags += ["--set", f"{key}={json.dumps(value, default=_plain)}"]
        return flags
    tree: dict[str, Any] = {"env": {"id": env}}
    for key, value in keys.items():
        at, *path = reversed(key.split("."))
        inner = tree
        for part in reversed(path):
            inner = inner.setdefault(part, {})
        inner[at] = value
    file = folder / "run.yaml"
    file.write_text(json.dumps(tree, default=_plain), encoding="utf-8")  # JSON is YAML
    return ["-c", str(file)]


def _flatten(kwargs: Mapping[str, Any], prefix: str, out: dict[str, Any]) -> None:
    for key, value in kwargs.items():
        if isinstance(value, Mapping) and prefix + key != "cluster":
            _flatten(value, f"{prefix}{key}.", out)
        elif value is not None:
            out[prefix + key] = value


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    raise TypeError(f"{value!r} is a {type(value).__name__}, want a number, a text or a bool")


def _address(child: Child, folder: str) -> str:
    """Where the child serves. It says so once it has read the workload, for which there is no time limit."""
    while True:
        found = re.search(r"can connect to (\S+)$", child.said(), re.MULTILINE)
        if found:
            return found[1]
        if child.process.poll() is not None:
            raise GymctlError(_said(child, folder))
        time.sleep(0.01)


def _said(child: Child, folder: str) -> str:
    # Of the files in the folder the user knows nothing; the keys in the message are theirs.
    return re.sub(re.escape(folder + os.sep) + r"(run|cluster)\.yaml(:\d+)?(: )?", "", child.sentence())


def _number(value: float | None) -> float:
    """A number of the document, in which what is no number is null."""
    return math.nan if value is None else float(value)


def _interval(ends: Sequence[float | None] | None) -> tuple[float, float] | None:
    """An interval of the document: null = there is none, and an upper end that is null = there is no limit."""
    if ends is None:
        return None
    low, high = ends
    return _number(low), math.inf if high is None else float(high)


def _rows(document: Mapping[str, Any], name: str) -> list[Row]:
    metric = document.get("metric") or "jct_s"
    streams = document.get("protocol") == "streams"
    rows: list[Row] = []
    for policy in document["policies"]:
        if "metrics" not in policy:
            raise ClusterGymError(f"compare: {policy['name']} {policy.get('missing') or 'has no results'}")
        metrics = {key: value for key, value in policy["metrics"].items() if isinstance(value, Mapping)}
        by = metrics.get(metric) or metrics.get("score") or metrics["jct_s"]
        means = {key: _number(value["mean"]) for key, value in metrics.items()}
        values = by["per_stream"] if streams else by["per_window"]
        row = Row(
            policy["name"], policy["kind"], means, [_number(x) for x in values], metric,
            trained_on=policy.get("trained_on"), asks_nothing=bool(policy.get("asks_nothing")),
            greedy=policy.get("greedy"), ci=_interval(by["ci95"]) if streams else None,
            keeps_up=bool(policy["metrics"].get("keeps_up", True)),
        )  # fmt: skip
        for pair in document.get("paired") or []:
            if pair["a"] == name and pair["b"] == row.name and pair["metric"] == metric:
                row = replace(
                    row,
                    difference=_number(pair["difference_percent"]),
                    interval=_interval(pair["ci95"]),
                    win_rate=None if streams else float(pair["win_rate"]),
                    verdict=pair.get("verdict"),
                )
        rows.append(row)
    return sorted(rows, key=lambda row: row.name != name)
