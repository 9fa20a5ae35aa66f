"""What render gives: pictures drawn by the server, and texts."""

from __future__ import annotations

import json
import pickle
import subprocess
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
import pytest

import clustergym
from clustergym import LocalServer, RemoteEnv, RemoteVectorEnv, find_gymctl

IDS: list[str] = [
    env["id"]
    for env in json.loads(
        subprocess.run([find_gymctl(), "envs", "--json"], capture_output=True, check=True, timeout=60).stdout
    )["envs"]
]


def check(frame: Any) -> npt.NDArray[np.uint8]:
    """Fails unless frame is a picture that shows something and belongs to the caller."""
    assert isinstance(frame, np.ndarray)
    assert frame.dtype == np.uint8
    assert frame.shape == (480, 640, 3)
    assert frame.flags.writeable
    assert frame.flags.c_contiguous
    assert len(np.unique(frame.reshape(-1, 3), axis=0)) > 2
    return frame


def act(env: gym.Env[Any, Any], info: dict[str, Any]) -> Any:
    """The lowest legal action, or the middle of a box."""
    space = env.action_space
    if isinstance(space, gym.spaces.Box):
        return (space.low + space.high) / 2
    return int(np.flatnonzero(info["action_mask"])[0])


@pytest.mark.parametrize("env_id", IDS)
def test_every_environment_has_pictures(env_id: str, url: str) -> None:
    env = gym.make(f"clustergym/{env_id}", url=url, render_mode="rgb_array")
    assert env.render_mode == "rgb_array"
    assert env.metadata["render_modes"] == ["ansi", "rgb_array"]
    assert 1 <= env.metadata["render_fps"] <= 60
    _, info = env.reset(seed=1)
    first = check(env.render())
    assert np.array_equal(first, env.render())
    _, _, _, _, info = env.step(act(env, info))
    assert not np.array_equal(first, check(env.render()))
    env.close()


def test_cartpole_keeps_its_pace(url: str) -> None:
    env = RemoteEnv("CartPole-v1", url)
    assert env.metadata["render_fps"] == 50
    assert RemoteEnv.metadata["render_modes"] == ["ansi", "rgb_array"]
    with pytest.warns(UserWarning, match="needs a render mode"):
        assert env.render() is None
    env.close()


@pytest.mark.parametrize("env_id", ["JobSelect-v1", "CartPole-v1"])
def test_rendering_changes_nothing(env_id: str, url: str) -> None:
    def play(render_mode: str | None) -> list[bytes]:
        env = gym.make(f"clustergym/{env_id}", url=url, render_mode=render_mode, obs="flat")
        obs, info = env.reset(seed=3)
        seen = [obs.tobytes()]
        for _ in range(8):
            obs, reward, _, _, info = env.step(act(env, info))
            seen.append(obs.tobytes() + repr(reward).encode())
            if render_mode:
                env.render()
        env.close()
        return seen

    assert play(None) == play("rgb_array") == play("ansi")


def test_vectors_have_a_picture_of_each(url: str) -> None:
    envs = RemoteVectorEnv("CartPole-v1", 3, url, render_mode="rgb_array")
    one = RemoteEnv("CartPole-v1", url, render_mode="rgb_array")
    envs.reset(seed=5)
    shown = envs.render()
    assert shown is not None
    assert len(shown) == 3
    for i, frame in enumerate(shown):
        one.reset(seed=5 + i)
        assert np.array_equal(check(frame), one.render())
    other = pickle.loads(pickle.dumps(envs))
    assert other.metadata == envs.metadata
    assert envs.metadata["render_fps"] == 50
    for e in (envs, one, other):
        e.close()


@pytest.fixture
def narrow() -> Iterator[str]:
    """A server whose replies have room for two pictures."""
    with LocalServer(args=["--max-frame-out", "2097152"]) as server:
        yield server.url


def test_pictures_come_in_several_replies_if_need_be(narrow: str) -> None:
    envs = RemoteVectorEnv("CartPole-v1", 5, narrow, render_mode="rgb_array")
    envs.reset(seed=5)
    shown = envs.render()
    assert shown is not None
    assert len(shown) == 5
    assert len({check(frame).tobytes() for frame in shown}) == 5
    envs.close()


def test_unknown_modes_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"render_mode is 'human', want None or one of \['ansi', 'rgb_array'\]"):
        RemoteEnv("CartPole-v1", url, render_mode="human")
    with pytest.raises(clustergym.RemoteError, match="ansi, rgb_array"):
        RemoteVectorEnv("CartPole-v1", 2, url, render_mode="human")


def test_a_list_of_frames_is_gymnasiums_business(url: str) -> None:
    env = gym.make("clustergym/CartPole-v1", url=url, render_mode="rgb_array_list")
    env.reset(seed=1)
    env.step(0)
    frames = env.render()
    assert isinstance(frames, list)
    assert [check(frame).shape for frame in frames] == [(480, 640, 3)] * 2
    env.close()
