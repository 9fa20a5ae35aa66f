"""Agents of these libraries learn on remote environments: better than random legal play, with certainty.

Each run plays its trained agent and random legal actions on the same episodes, none of which it was trained on; the
95 % bootstrap interval of the difference must lie above zero.
"""

from __future__ import annotations

import json
from typing import Any

import cleanrl_ppo
import numpy as np
import sb3_dqn
import sb3_maskable_ppo
import sb3_ppo
from conftest import SMALL
from sb3_contrib import MaskablePPO

import paired
from clustergym.sb3 import RemoteSB3VecEnv

JOBSELECT = ["--env", "JobSelect-v1", "--kwargs", json.dumps(SMALL)]


def better(result: dict[str, Any]) -> None:
    low, high = result["interval"]
    assert 0 < low <= high, result


def test_maskable_ppo_reaches_ninety_of_a_hundred_within_five_thousand_steps(url: str) -> None:
    options = {"url": url, "obs": "flat"}
    env = RemoteSB3VecEnv("InvalidAction-v1", 1, **options)
    model = MaskablePPO("MlpPolicy", env, gamma=0.4, seed=32, device="cpu")
    model.learn(5000)
    env.close()

    def act(obs: np.ndarray, masks: np.ndarray) -> np.ndarray:
        return model.predict(obs, deterministic=True, action_masks=masks)[0]

    returns = paired.play(act, "InvalidAction-v1", list(range(1000, 1020)), **options)
    random = paired.play(paired.random_legal(1), "InvalidAction-v1", list(range(1000, 1020)), **options)
    assert returns.mean() >= 90, returns
    assert 2 < random.mean() < 8, "one of twenty legal actions is right"


def test_ppo_of_sb3_balances_the_pole(url: str) -> None:
    better(sb3_ppo.main(["--url", url, "--steps", "15000", "--episodes", "20"]))


def test_dqn_of_sb3_balances_the_pole(url: str) -> None:
    better(sb3_dqn.main(["--url", url, "--steps", "15000", "--episodes", "20"]))


def test_ppo_of_sb3_learns_which_job_starts_without_masks(url: str) -> None:
    better(sb3_ppo.main([*JOBSELECT, "--url", url, "--steps", "30000", "--gamma", "0.999", "--episodes", "64"]))


def test_dqn_of_sb3_learns_which_job_starts_without_masks(url: str) -> None:
    better(sb3_dqn.main([*JOBSELECT, "--url", url, "--steps", "30000", "--gamma", "0.999", "--episodes", "64"]))


def test_maskable_ppo_learns_which_job_starts(url: str) -> None:
    better(sb3_maskable_ppo.main([*JOBSELECT, "--url", url, "--steps", "30000", "--episodes", "64"]))


def test_ppo_in_one_file_learns_which_job_starts(url: str) -> None:
    better(cleanrl_ppo.main([*JOBSELECT, "--url", url, "--steps", "40000", "--rollout", "64", "--episodes", "64"]))
