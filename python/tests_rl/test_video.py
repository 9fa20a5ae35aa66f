"""Videos: the wrappers of Gymnasium and Stable-Baselines3 that record them, unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import RecordVideo
from gymnasium.wrappers.vector import RecordVideo as RecordVectorVideo
from imageio_ffmpeg import count_frames_and_secs, read_frames
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecVideoRecorder

from clustergym import RemoteVectorEnv
from clustergym.sb3 import RemoteSB3VecEnv
from conftest import kwargs_of

BOTH = pytest.mark.parametrize("env_id", ["JobSelect-v1", "CartPole-v1"])


def check(path: Path, frames: int, fps: float, size: tuple[int, int] = (640, 480)) -> list[Any]:
    """Plays the file and returns its pictures. MoviePy rounds a video's length, and may leave out the last one."""
    reader = read_frames(str(path))
    meta: Any = next(reader)
    assert tuple(meta["source_size"]) == size
    assert meta["fps"] == pytest.approx(fps)
    pictures = [np.frombuffer(frame, np.uint8).reshape(size[1], size[0], 3) for frame in reader]
    assert frames - 1 <= len(pictures) <= frames
    assert count_frames_and_secs(str(path))[0] == len(pictures)
    return pictures


def legal(env: gym.Env[Any, Any]) -> int:
    return int(np.flatnonzero(env.unwrapped.action_masks())[0])


@BOTH
def test_gymnasium_records_an_episode(env_id: str, url: str, tmp_path: Path) -> None:
    plain = gym.make(f"clustergym/{env_id}", url=url, render_mode="rgb_array", obs="flat", kwargs=kwargs_of(env_id))
    env = RecordVideo(plain, str(tmp_path / "videos"), episode_trigger=lambda episode: True)
    env.reset(seed=1)
    shown = [env.render()]
    while len(shown) < 30:
        _, _, terminated, truncated, _ = env.step(legal(env))
        shown.append(env.render())
        if terminated or truncated:
            break
    fps = env.metadata["render_fps"]
    env.close()
    (path,) = (tmp_path / "videos").glob("*.mp4")
    recorded = check(path, len(shown), fps)
    # Compression loses details, but not what there is to see.
    for a, b in zip(recorded, shown):
        assert np.abs(a.astype(float) - b).mean() < 6


def test_gymnasium_records_vector_environments(url: str, tmp_path: Path) -> None:
    envs = RemoteVectorEnv("CartPole-v1", 3, url, render_mode="rgb_array", autoreset_mode=AutoresetMode.NEXT_STEP)
    env = RecordVectorVideo(envs, str(tmp_path / "videos"), step_trigger=lambda step: step == 0, video_length=5)
    env.reset(seed=1)
    for _ in range(8):
        env.step(np.zeros(3, np.int64))
    env.close()
    assert list((tmp_path / "videos").glob("*.mp4"))


@BOTH
def test_sb3_makes_and_shows_environments(env_id: str, url: str) -> None:
    options = {"url": url, "obs": "flat", "kwargs": kwargs_of(env_id)}
    env = make_vec_env(f"clustergym/{env_id}", n_envs=2, seed=1, env_kwargs=options)
    env.reset()
    assert env.render_mode == "rgb_array"
    images = env.get_images()
    assert [(image.shape, image.dtype) for image in images] == [((480, 640, 3), np.uint8)] * 2
    tiled = env.render()
    assert isinstance(tiled, np.ndarray)
    assert tiled.size == 2 * 480 * 640 * 3
    env.close()


def test_sb3_takes_an_environment_by_its_name(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLUSTERGYM_URL", url)
    model = PPO("MlpPolicy", "clustergym/CartPole-v1", n_steps=16, batch_size=16, n_epochs=1, device="cpu")
    model.learn(16)
    env = model.get_env()
    assert env is not None
    picture = env.render()
    assert isinstance(picture, np.ndarray)
    assert picture.shape == (480, 640, 3)
    env.close()


@pytest.mark.parametrize("own", [True, False])
def test_sb3_records_videos(own: bool, url: str, tmp_path: Path) -> None:
    if own:
        env: Any = RemoteSB3VecEnv("CartPole-v1", 2, url=url, render_mode="rgb_array", obs="flat")
        images = env.get_images() if env.reset() is not None else []
        assert [image.shape for image in images] == [(480, 640, 3)] * 2
        assert [image.shape for image in env.env_method("render", indices=[1])] == [(480, 640, 3)]
        assert np.array_equal(env.env_method("render", indices=[1])[0], images[1])
    else:
        env = make_vec_env("clustergym/CartPole-v1", n_envs=2, env_kwargs={"url": url, "obs": "flat"})
    env = VecVideoRecorder(env, str(tmp_path / "videos"), lambda step: step == 0, video_length=10)
    env.reset()
    for step in range(14):
        env.step(np.full(2, step % 2))
    env.close()
    (path,) = (tmp_path / "videos").glob("*.mp4")
    height, width = 2 * 480, 640  # the tiles stand one above the other
    check(path, 11, 50, (width, height))
