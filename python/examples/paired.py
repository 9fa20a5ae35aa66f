"""What the examples share: their arguments, and a comparison with random legal actions on the same episodes."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from clustergym import RemoteVectorEnv

MASK = "action_mask"

# Takes a batch of observations and masks, bool (n, actions), and returns n actions.
Act = Callable[[Any, np.ndarray], np.ndarray]


def add_arguments(parser: argparse.ArgumentParser, steps: int, envs: int, env: str = "JobSelect-v1") -> None:
    parser.add_argument("--env", default=env, help="id of the environment (gymctl envs lists them)")
    parser.add_argument("--kwargs", type=json.loads, default={}, help="its arguments as JSON: '{\"window\": 64}'")
    parser.add_argument("--url", help="of a server that runs already, ws://host:port; default: one is started")
    parser.add_argument("--steps", type=int, default=steps, help="of all environments together")
    parser.add_argument("--envs", type=int, default=envs, help="environments that step together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--episodes", type=int, default=32, help="that are compared at the end")


def options(args: argparse.Namespace) -> dict[str, Any]:
    """What every environment of a run is opened with."""
    return {"url": args.url, "kwargs": args.kwargs}


def legal(info: Mapping[str, Any], n: int, actions: int) -> np.ndarray:
    """The masks of a step, all true where the environment has none."""
    mask = info.get(MASK)
    return np.ones((n, actions), bool) if mask is None else np.asarray(mask, bool)


def random_legal(seed: int) -> Act:
    """A policy that draws uniformly from the legal actions."""
    rng = np.random.default_rng(seed)
    return lambda _, masks: np.where(masks, rng.random(masks.shape), -1.0).argmax(axis=1)


def play(act: Act, env: str, seeds: list[int], limit: int = 100_000, **options: Any) -> np.ndarray:
    """The returns of one episode for each seed."""
    n = len(seeds)
    envs = RemoteVectorEnv(env, n, autoreset_mode=AutoresetMode.SAME_STEP, **options)
    try:
        actions = int(envs.single_action_space.n)
        obs, info = envs.reset(seed=seeds)
        returns, running = np.zeros(n), np.ones(n, bool)
        for _ in range(limit):
            obs, reward, terminated, truncated, info = envs.step(act(obs, legal(info, n, actions)))
            returns += np.where(running, reward, 0.0)
            running &= ~(terminated | truncated)
            if not running.any():
                return returns
    finally:
        envs.close()
    raise RuntimeError(f"{env}: {running.sum()} of {n} episodes did not end within {limit} steps")


def interval(differences: np.ndarray, draws: int = 10_000) -> tuple[float, float]:
    """The 95 % bootstrap interval of the mean."""
    rng = np.random.default_rng(0)
    means = differences[rng.integers(len(differences), size=(draws, len(differences)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def compare(act: Act, args: argparse.Namespace, options: Mapping[str, Any], first: int = 1_000_000) -> dict[str, Any]:
    """Play act and random legal actions on the same episodes, which training has not seen, and say what came out."""
    seeds = list(range(first, first + args.episodes))
    agent = play(act, args.env, seeds, **options)
    random = play(random_legal(args.seed), args.env, seeds, **options)
    low, high = interval(agent - random)
    print(
        f"{args.env}: return {agent.mean():.4f}, random {random.mean():.4f} over {args.episodes} episodes; "
        f"difference {np.mean(agent - random):+.4f}, 95 % interval {low:+.4f} to {high:+.4f}"
    )
    return {"env": args.env, "agent": float(agent.mean()), "random": float(random.mean()), "interval": [low, high]}
