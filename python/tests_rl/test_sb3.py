"""Stable-Baselines3: its checker, and equality of one remote vector with its own vector of single environments."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecCheckNan

from clustergym import RemoteEnv, RemoteVectorEnv
from clustergym.sb3 import RemoteSB3VecEnv
from conftest import IDS, SMALL, kwargs_of

# What is true of an environment and no fault: images of queues are no vectors, and some actions are not in [-1, 1].
EXCUSED = ("has an unconventional shape", "symmetric and normalized Box action space")


def strictly(env: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for text in EXCUSED:
            warnings.filterwarnings("ignore", message=f".*{text}")
        check_env(env, warn=True)


@pytest.mark.parametrize("obs", ["dict", "flat"])
@pytest.mark.parametrize("env_id", IDS)
def test_the_checker_of_sb3_passes_every_environment(url: str, env_id: str, obs: str) -> None:
    strictly(RemoteEnv(env_id, url, obs=obs, kwargs=kwargs_of(env_id)))


@pytest.mark.parametrize("env_id", IDS)
def test_masks_in_observations_pass_the_checker(url: str, env_id: str) -> None:
    strictly(RemoteEnv(env_id, url, mask=["obs"], kwargs=kwargs_of(env_id)))


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b)
    return type(a) is type(b) and a == b


def unmasked(infos: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in info.items() if k != "action_mask"} for info in infos]


def valued(info: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """info without what stands in place of values, so far as other has none: single environments have every key."""
    blanks = ({"r": 0.0, "l": 0}, 0.0, -1, False)
    return {k: v for k, v in info.items() if k in other or v not in blanks}


@pytest.mark.parametrize("env_id", IDS)
def test_a_remote_vector_is_what_sb3_makes_of_single_environments(url: str, env_id: str) -> None:
    n, kwargs = 3, kwargs_of(env_id)
    remote = RemoteSB3VecEnv(env_id, n, url=url, kwargs=kwargs)
    single = DummyVecEnv([lambda: RemoteEnv(env_id, url, info=["episode", "metrics"], kwargs=kwargs) for _ in range(n)])
    remote.action_space.seed(1)
    ended = 0
    try:
        assert remote.observation_space == single.observation_space
        assert remote.action_space == single.action_space
        assert remote.seed(5) == single.seed(5)
        assert equal(remote.reset(), single.reset())
        for _ in range(600):  # Acrobot's episodes have 500 steps
            if isinstance(remote.action_space, spaces.Box):
                actions = np.stack([remote.action_space.sample() for _ in range(n)])
            else:
                assert np.array_equal(get_action_masks(remote), get_action_masks(single))
                actions = np.array([remote.action_space.sample(m.astype(np.int8)) for m in get_action_masks(remote)])
            obs, rewards, dones, infos = remote.step(actions)
            obs_, rewards_, dones_, infos_ = single.step(actions)
            assert equal(obs, obs_)
            assert equal(rewards, rewards_)
            assert equal(dones, dones_)
            for info, info_ in zip(unmasked(infos), unmasked(infos_), strict=True):
                assert equal(info, valued(info_, info))
            for info, info_ in zip(unmasked(remote.reset_infos), unmasked(single.reset_infos)):
                assert equal(info, valued(info_, info))
            ended += int(dones.sum())
            if ended >= 4:
                break
        assert ended, "no episode ended, so nothing was seen of ends"
    finally:
        remote.close()
        single.close()


def test_the_true_last_observation_stands_beside_a_cut(url: str) -> None:
    env = RemoteSB3VecEnv("InvalidAction-v1", 2, url=url)
    try:
        env.seed(3)
        obs = env.reset()
        for step in range(100):
            last = obs.copy()
            obs, _, dones, infos = env.step(obs.argmax(axis=1))
            assert dones.tolist() == [step == 99] * 2
        for i, info in enumerate(infos):
            assert info["TimeLimit.truncated"] is True
            assert info["episode"] == {"r": 100.0, "l": 100}
            assert info["terminal_observation"].shape == obs[i].shape
            assert not np.array_equal(info["terminal_observation"], obs[i]) or not np.array_equal(last[i], obs[i])
        env.step(obs.argmax(axis=1))
        assert infos[0]["terminal_observation"].sum() == 1, "a later step has written into an earlier observation"
    finally:
        env.close()


def test_asking_for_masks_costs_no_round_trip(url: str) -> None:
    env = RemoteSB3VecEnv("JobSelect-v1", 4, url=url, kwargs=SMALL)
    try:
        assert is_masking_supported(env)
        env.seed(1)
        env.reset()
        before = env.vector_env.stats.requests
        for _ in range(10):
            masks = get_action_masks(env)
        assert env.vector_env.stats.requests == before
        assert masks.shape == (4, env.action_space.n)
        assert masks.dtype == np.bool_
        assert masks.any(axis=1).all()
        assert np.array_equal(env.env_method("action_masks", indices=[2])[0], masks[2])
        assert np.array_equal(env.get_attr("action_masks", 1)[0](), masks[1])
    finally:
        env.close()


def test_real_actions_have_no_masks(url: str) -> None:
    env = RemoteSB3VecEnv("Nav2D-v1", 2, url=url)
    assert not is_masking_supported(env)
    env.close()


def test_attributes_are_kept_on_this_side(url: str) -> None:
    env = RemoteSB3VecEnv("CartPole-v1", 3, url=url)
    try:
        assert env.get_attr("render_mode") == [None] * 3
        assert not env.has_attr("color")
        env.set_attr("color", "blue", indices=[1])
        assert env.get_attr("color", 1) == ["blue"]
        with pytest.raises(AttributeError, match="no attribute 'color'"):
            env.get_attr("color")
        assert env.env_is_wrapped(Monitor) == [False] * 3
        assert env.env_is_wrapped(Monitor, [0]) == [False]
    finally:
        env.close()
        env.close()


def test_methods_of_the_server_answer_for_each_environment(url: str) -> None:
    env = RemoteSB3VecEnv("JobSelect-v1", 3, url=url, kwargs=SMALL)
    try:
        env.seed(1)
        env.reset()
        rules = env.env_method("heuristic", rule="sjf", indices=[0, 2])
        masks = get_action_masks(env)
        assert len(rules) == 2
        assert masks[0][rules[0]]
        assert masks[2][rules[1]]
        with pytest.raises(TypeError, match="by name"):
            env.env_method("heuristic", "sjf")
    finally:
        env.close()


def test_options_name_a_window(url: str) -> None:
    env = RemoteSB3VecEnv("JobSelect-v1", 2, url=url, kwargs=SMALL)
    try:

        def first(**options: Any) -> Any:
            env.seed(1)
            env.set_options(options)
            return env.reset()

        assert equal(first(split="test", window=0), first(split="test", window=0))
        assert not equal(first(split="test", window=0), first(split="test", window=1))
        env.set_options([{"window": 0}, {"window": 1}])
        with pytest.raises(ValueError, match="the same options"):
            env.reset()
    finally:
        env.close()


def test_a_vector_that_resets_in_another_step_is_refused(url: str) -> None:
    venv = RemoteVectorEnv("CartPole-v1", 2, url, autoreset_mode=AutoresetMode.NEXT_STEP)
    with pytest.raises(ValueError, match="SAME_STEP"):
        RemoteSB3VecEnv(venv)
    venv.close()
    venv = RemoteVectorEnv("CartPole-v1", 2, url, autoreset_mode=AutoresetMode.SAME_STEP)
    with pytest.raises(ValueError, match="num_envs and options"):
        RemoteSB3VecEnv(venv, 3)
    env = VecCheckNan(RemoteSB3VecEnv(venv))
    env.reset()
    env.step(np.zeros(2, np.int64))
    env.close()
