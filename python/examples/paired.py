"""What the examples share: arguments, progress, an end by Ctrl-C, a comparison with random legal actions on the same episodes."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from gymnasium.vector import AutoresetMode

from clustergym import RemoteVectorEnv

MASK = "action_mask"

# A JobSelect-v1 that agents learn in a minute: few jobs, none of them for days, on a small cluster. Returns vary little
# between episodes, and shortest first is worth much more than random play.
SMALL: dict[str, Any] = {
    "cluster": "1x4", "window": 32, "warm": 0, "load": 3.0, "visible": 8, "max_gpus": 4, "comm": "none",
    "reward": "wait", "relative": "sjf",
    "trace.synth.profile": "lublin", "trace.synth.procs": 4, "trace.synth.jobs": 6000,
}  # fmt: skip

# Takes a batch of observations and masks, bool (n, actions), and returns n actions.
Act = Callable[[Any, np.ndarray], np.ndarray]


def add_arguments(parser: argparse.ArgumentParser, steps: int, envs: int, env: str = "JobSelect-v1") -> None:
    parser.add_argument("--env", default=env, help="id of the environment (gymctl envs lists them)")
    parser.add_argument(
        "--kwargs",
        type=json.loads,
        help="its arguments as JSON: '{\"window\": 64}'; default: none, but a small JobSelect-v1",
    )
    parser.add_argument("--url", help="of a server that runs already, ws://host:port; default: one is started")
    parser.add_argument("--steps", type=int, default=steps, help="of all environments together")
    parser.add_argument("--envs", type=int, default=envs, help="environments that step together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--episodes", type=int, default=32, help="that are compared at the end")
    parser.add_argument("--save", help="file for the trained model")
    parser.add_argument("--resume", help="what --save or Ctrl-C has written: train that model for --steps more")


def parse(parser: argparse.ArgumentParser, argv: list[str] | None) -> argparse.Namespace:
    args = parser.parse_args(argv)
    if args.kwargs is None:
        args.kwargs = usual(args.env)
    return args


def usual(env: str) -> dict[str, Any]:
    """The arguments of an environment that the examples take unless --kwargs says otherwise."""
    return SMALL if env == "JobSelect-v1" else {}


def options(args: argparse.Namespace) -> dict[str, Any]:
    """What every environment of a run is opened with."""
    return {"url": args.url, "kwargs": args.kwargs}


def hours(jct_s: float | None) -> str:
    """A mean job completion time for people, "" if there is none."""
    return "" if jct_s is None or np.isnan(jct_s) else f"  JCT {jct_s / 3600:.2f} h"


class Progress:
    """Prints ten lines while so many steps are made."""

    def __init__(self, steps: int) -> None:
        self._every, self._began = max(1, steps // 10), time.monotonic()
        self._next = self._every

    def show(self, step: int, ret: float | None, jct_s: float | None, last: bool = False) -> None:
        """Step is of this run; ret and jct_s are means over recent episodes, None before the first has ended."""
        if step < self._next and not last:
            return
        self._next = step + self._every
        shown = "no episode has ended" if ret is None or np.isnan(ret) else f"return {ret:.4f}{hours(jct_s)}"
        rate = step / max(1e-9, time.monotonic() - self._began)
        print(f"step {step:>8}  {shown}  {rate:,.0f} steps/s", flush=True)


def interrupted(save: Callable[[str], Any], args: argparse.Namespace, suffix: str) -> NoReturn:
    """What Ctrl-C does: the model so far is saved, and a line says how to go on."""
    script = Path(sys.argv[0]).name
    file = args.save or f"{Path(script).stem}-{args.env}{suffix}"
    save(file)
    same = f" --kwargs '{json.dumps(args.kwargs)}'" if args.kwargs != usual(args.env) else ""
    print(
        f"interrupted: the model so far is in {file}; go on with: python {script} --env {args.env}{same} --resume {file}"
    )
    raise SystemExit(130)


def legal(info: Mapping[str, Any], n: int, actions: int) -> np.ndarray:
    """The masks of a step, all true where the environment has none."""
    mask = info.get(MASK)
    return np.ones((n, actions), bool) if mask is None else np.asarray(mask, bool)


def random_legal(seed: int) -> Act:
    """A policy that draws uniformly from the legal actions."""
    rng = np.random.default_rng(seed)
    return lambda _, masks: np.where(masks, rng.random(masks.shape), -1.0).argmax(axis=1)


def episodes(
    act: Act, env: str, seeds: list[int], limit: int = 100_000, **options: Any
) -> tuple[np.ndarray, np.ndarray]:
    """The returns of one episode for each seed, and its mean job completion time (NaN where there is none)."""
    n = len(seeds)
    envs = RemoteVectorEnv(env, n, autoreset_mode=AutoresetMode.SAME_STEP, **options)
    try:
        actions = int(envs.single_action_space.n)
        obs, info = envs.reset(seed=seeds)
        returns, jct, running = np.zeros(n), np.full(n, np.nan), np.ones(n, bool)
        for _ in range(limit):
            obs, reward, terminated, truncated, info = envs.step(act(obs, legal(info, n, actions)))
            returns += np.where(running, reward, 0.0)
            over = running & (terminated | truncated)
            if over.any():
                last = info["final_info"]
                known = over & last.get("_jct_s", np.zeros(n, bool))
                jct[known] = last["jct_s"][known] if known.any() else np.nan
                running &= ~over
                if not running.any():
                    return returns, jct
    finally:
        envs.close()
    raise RuntimeError(f"{env}: {running.sum()} of {n} episodes did not end within {limit} steps")


def play(act: Act, env: str, seeds: list[int], limit: int = 100_000, **options: Any) -> np.ndarray:
    """The returns of one episode for each seed."""
    return episodes(act, env, seeds, limit, **options)[0]


def interval(differences: np.ndarray, draws: int = 10_000) -> tuple[float, float]:
    """The 95 % bootstrap interval of the mean."""
    rng = np.random.default_rng(0)
    means = differences[rng.integers(len(differences), size=(draws, len(differences)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def compare(act: Act, args: argparse.Namespace, options: Mapping[str, Any], first: int = 1_000_000) -> dict[str, Any]:
    """Play act and random legal actions on the same episodes, which training has not seen, and say what came out."""
    seeds = list(range(first, first + args.episodes))
    agent, jct = episodes(act, args.env, seeds, **options)
    random, random_jct = episodes(random_legal(args.seed), args.env, seeds, **options)
    low, high = interval(agent - random)
    verdict = (
        "better than random play"
        if low > 0
        else "worse"
        if high < 0
        else "no better than random play, for all that is known"
    )
    print(
        f"{args.env}: return {agent.mean():.4f}{hours(jct.mean())}, random {random.mean():.4f}{hours(random_jct.mean())} "
        f"over {args.episodes} episodes; difference {np.mean(agent - random):+.4f}, 95 % interval {low:+.4f} to {high:+.4f}: "
        f"{verdict}"
    )
    result = {"env": args.env, "agent": float(agent.mean()), "random": float(random.mean()), "interval": [low, high]}
    if not np.isnan(jct + random_jct).any():
        result |= {"jct_s": float(jct.mean()), "random_jct_s": float(random_jct.mean())}
    return result
