"""Scripts that were written for other environments run on these: only the environment's id is another one."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_checker import check_env as check_env_of_sb3
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecNormalize

import clustergym
from clustergym.sb3 import MetricsCallback, RemoteSB3VecEnv
from conftest import SMALL

HERE = Path(__file__).parent
JOBS = {"kwargs": {**SMALL, "window": 8}}  # episodes of a few dozen steps
METRICS = {"jct_s", "wait_s", "slowdown", "makespan_s", "unfinished"}
IDS = ["clustergym/CartPole-v1", "clustergym/JobSelect-v1"]
# Gymnasium imports the module before the colon, which other processes need.
ANYWHERE = "clustergym:clustergym/JobSelect-v1"


@pytest.fixture(autouse=True)
def _server(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLUSTERGYM_URL", url)


# Stable-Baselines3.


@pytest.mark.parametrize("env_id", IDS)
def test_the_script_of_sb3s_readme(env_id: str, tmp_path: Path) -> None:
    model = PPO("MlpPolicy", env_id, n_steps=128, verbose=1).learn(total_timesteps=256)
    env = model.get_env()
    mean, deviation = evaluate_policy(model, env, n_eval_episodes=2)
    assert np.isfinite([mean, deviation]).all()
    model.save(tmp_path / "model")
    loaded = PPO.load(tmp_path / "model", env=env)
    obs = env.reset()
    for _ in range(20):
        action, _ = model.predict(obs, deterministic=True)
        assert np.array_equal(action, loaded.predict(obs, deterministic=True)[0])
        obs, _, _, _ = env.step(action)
    assert env.render("rgb_array").dtype == np.uint8
    env.close()


@pytest.mark.parametrize("kind", [DummyVecEnv, SubprocVecEnv])
def test_vectors_of_sb3_have_a_monitor_and_see_the_metrics(kind: Any, tmp_path: Path) -> None:
    envs = make_vec_env(ANYWHERE, 2, seed=1, monitor_dir=str(tmp_path), vec_env_cls=kind, env_kwargs=JOBS)
    envs.reset()
    last: list[dict[str, Any]] = []
    while len(last) < 3:
        actions = (
            np.array([mask().argmax() for mask in envs.get_attr("action_masks")]) if kind is DummyVecEnv else [0, 0]
        )
        _, _, dones, infos = envs.step(np.asarray(actions))
        last += [info for info, done in zip(infos, dones) if done]
    for info in last:
        assert METRICS - {"jct_s"} <= METRICS & set(info)
        assert {"r", "l", "t"} <= set(info["episode"])
    envs.close()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0.monitor.csv", "1.monitor.csv"]


def test_dqn_by_id() -> None:
    model = DQN("MlpPolicy", IDS[0], learning_starts=50, buffer_size=500).learn(400)
    assert model.get_env().envs[0].get_episode_rewards(), "the monitor has seen no episode"
    model.get_env().close()
    DQN("MlpPolicy", IDS[1], learning_starts=50, buffer_size=500).learn(100).get_env().close()


@pytest.mark.parametrize("env_id", IDS)
def test_both_checkers_take_the_environment_as_gymnasium_makes_it(env_id: str) -> None:
    for check in (lambda e: check_env(e.unwrapped), check_env_of_sb3):
        env = gym.make(env_id)
        check(env)
        env.close()


class Watch(BaseCallback):
    """Keeps the metrics of all episodes that end."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, list[float]] = {}

    def _on_step(self) -> bool:
        for info, done in zip(self.locals["infos"], self.locals["dones"]):
            for name in METRICS & set(info) if done else ():
                self.seen.setdefault(name, []).append(info[name])
        return True


def remote() -> Any:
    return RemoteSB3VecEnv("JobSelect-v1", 2, **JOBS)


def of_sb3() -> Any:
    return make_vec_env(IDS[1], 2, env_kwargs=JOBS)


def in_processes() -> Any:
    return VecNormalize(make_vec_env(ANYWHERE, 2, env_kwargs=JOBS, vec_env_cls=SubprocVecEnv))


@pytest.mark.parametrize("make", [remote, of_sb3, in_processes])
def test_the_log_of_sb3_shows_the_metrics_of_the_last_episodes(make: Any, tmp_path: Path) -> None:
    env, watch, metrics = make(), Watch(), MetricsCallback(stats_window_size=4)
    model = A2C("MlpPolicy", env, n_steps=16, seed=1, device="cpu")
    model.set_logger(configure(str(tmp_path), ["csv"]))
    model.learn(1600, callback=[watch, metrics], log_interval=5)
    env.close()
    assert set(watch.seen) == METRICS
    assert len(watch.seen["jct_s"]) > 4, "too few episodes to tell the last ones from all"
    assert metrics.means == {name: pytest.approx(np.mean(values[-4:])) for name, values in watch.seen.items()}
    rows = list(csv.DictReader((tmp_path / "progress.csv").open()))
    for name in METRICS:
        assert float(rows[-1][f"rollout/{name}"]) == pytest.approx(metrics.means[name])


def test_the_log_of_an_off_policy_algorithm_shows_them_too(tmp_path: Path) -> None:
    # One environment: if two end in the same step, SB3 logs the second without the values of callbacks.
    env = RemoteSB3VecEnv("JobSelect-v1", **JOBS)
    model = DQN("MlpPolicy", env, learning_starts=100, buffer_size=1000, train_freq=16, seed=1, device="cpu")
    model.set_logger(configure(str(tmp_path), ["csv"]))
    watch, metrics = Watch(), MetricsCallback()
    model.learn(800, callback=[watch, metrics], log_interval=1)
    model.get_env().close()
    rows = list(csv.DictReader((tmp_path / "progress.csv").open()))
    shown = [float(row["rollout/jct_s"]) for row in rows if row["rollout/jct_s"]]
    assert len(shown) == len(rows), "episodes ended, and a row does not say how"
    assert shown == pytest.approx([np.mean(watch.seen["jct_s"][: i + 1]) for i in range(len(rows))])


def test_metrics_of_other_environments_are_asked_for_in_vain() -> None:
    with pytest.raises(ValueError, match="needs environments of clustergym"):
        PPO("MlpPolicy", "CartPole-v1", n_steps=64).learn(64, callback=MetricsCallback())
    model = PPO("MlpPolicy", IDS[0], n_steps=64)  # has no metrics
    model.learn(64, callback=MetricsCallback())
    model.get_env().close()
    with pytest.raises(ValueError, match="1 or more episodes"):
        MetricsCallback(stats_window_size=0)
    venv = clustergym.RemoteVectorEnv("CartPole-v1", 2, autoreset_mode="SameStep")
    with pytest.warns(UserWarning, match="no ep_rew_mean"):
        RemoteSB3VecEnv(venv).close()


# Gymnasium's wrappers.

SINGLE = {
    "RecordEpisodeStatistics": gym.wrappers.RecordEpisodeStatistics,
    "TimeLimit": lambda e: gym.wrappers.TimeLimit(e, 5),
    "FlattenObservation": gym.wrappers.FlattenObservation,
    "NormalizeObservation": gym.wrappers.NormalizeObservation,
    "NormalizeReward": gym.wrappers.NormalizeReward,
    "ClipReward": lambda e: gym.wrappers.ClipReward(e, -0.5, 0.5),
    "TransformReward": lambda e: gym.wrappers.TransformReward(e, lambda r: 2 * r),
    "FrameStackObservation": lambda e: gym.wrappers.FrameStackObservation(e, 4),
    "DtypeObservation": lambda e: gym.wrappers.DtypeObservation(e, np.float64),
}


def options(env_id: str) -> dict[str, Any]:
    return JOBS if env_id == IDS[1] else {}


def action_of(info: dict[str, Any]) -> Any:
    return info["action_mask"].argmax(axis=-1)


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("env_id", IDS)
def test_wrappers_of_single_environments(env_id: str, name: str) -> None:
    plain, env = gym.make(env_id, **options(env_id)), SINGLE[name](gym.make(env_id, **options(env_id)))
    obs, info = env.reset(seed=3)
    _, info_ = plain.reset(seed=3)
    total, steps, over = 0.0, 0, False
    while not over:
        assert obs in env.observation_space
        obs, reward, terminated, truncated, info = env.step(action_of(info))
        _, reward_, terminated_, truncated_, info_ = plain.step(action_of(info_))
        total, steps, over = total + reward_, steps + 1, terminated or truncated
        if name == "ClipReward":
            assert reward == np.clip(reward_, -0.5, 0.5)
        elif name == "TransformReward":
            assert reward == 2 * reward_
        elif name != "NormalizeReward":
            assert reward == reward_
        assert (terminated, truncated) == (
            (terminated_, steps == 5) if name == "TimeLimit" else (terminated_, truncated_)
        )
    if name == "RecordEpisodeStatistics":
        assert info["episode"]["r"] == pytest.approx(total)
        assert info["episode"]["l"] == steps
    if env_id == IDS[1] and name != "TimeLimit":
        assert info["jct_s"] == info_["jct_s"]
    env.close()
    plain.close()


VECTOR = {
    "RecordEpisodeStatistics": gym.wrappers.vector.RecordEpisodeStatistics,
    "FlattenObservation": gym.wrappers.vector.FlattenObservation,
    "NormalizeObservation": gym.wrappers.vector.NormalizeObservation,
    "NormalizeReward": gym.wrappers.vector.NormalizeReward,
    "ClipReward": lambda e: gym.wrappers.vector.ClipReward(e, -0.5, 0.5),
    "TransformReward": lambda e: gym.wrappers.vector.TransformReward(e, lambda r: 2 * r),
    "DtypeObservation": lambda e: gym.wrappers.vector.DtypeObservation(e, np.float64),
    "DictInfoToList": gym.wrappers.vector.DictInfoToList,
}


@pytest.mark.parametrize("mode", [None, "sync"])
@pytest.mark.parametrize("name", VECTOR)
@pytest.mark.parametrize("env_id", IDS)
def test_wrappers_of_vector_environments(env_id: str, name: str, mode: str | None) -> None:
    n = 3
    envs = VECTOR[name](gym.make_vec(env_id, n, vectorization_mode=mode, **options(env_id)))
    _, infos = envs.reset(seed=3)
    ended = 0
    while ended < 4:
        if name == "DictInfoToList":
            actions = np.array([action_of(info) for info in infos])
        else:
            actions = np.asarray(infos["action_mask"]).argmax(axis=1)
        obs, rewards, terminated, truncated, infos = envs.step(actions)
        over = np.asarray(terminated) | np.asarray(truncated)
        ended += int(over.sum())
        if name == "RecordEpisodeStatistics" and over.any():
            assert (infos["_episode"] == over).all()
            assert (infos["episode"]["l"][over] > 1).all()
        if name == "ClipReward":
            assert (abs(rewards) <= 0.5).all()
        assert len(obs) == n
    envs.close()


# RL Baselines3 Zoo, by its own command line.


def run(*command: str, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, *command], cwd=cwd, env=os.environ, capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    return done.stdout


def test_the_zoo_trains_enjoys_and_films(tmp_path: Path) -> None:
    (tmp_path / "ppo.yml").write_text(
        "clustergym/JobSelect-v1:\n  {n_timesteps: 2000, policy: MlpPolicy, n_steps: 256, gamma: 0.999}\n"
    )
    which = ["--algo", "ppo", "--env", IDS[1], "--gym-packages", "clustergym", "-f", "logs", "--device", "cpu"]
    out = run("-m", "rl_zoo3.train", *which, "-n", "2000", "-conf", "ppo.yml", cwd=tmp_path)
    assert "ep_rew_mean" in out
    assert (tmp_path / "logs/ppo/clustergym-JobSelect-v1_1/clustergym-JobSelect-v1.zip").is_file()
    # Whatever it has learned from its own random seed, an episode ends within 200 steps.
    out = run("-m", "rl_zoo3.enjoy", *which, "-n", "250", "--no-render", "--env-kwargs", "max_steps:200", cwd=tmp_path)
    assert "Episode Reward" in out
    # This command takes no --gym-packages.
    film = "import runpy, clustergym; runpy.run_module('rl_zoo3.record_video', run_name='__main__')"
    run("-c", film, "--algo", "ppo", "--env", IDS[1], "-f", "logs", "-n", "20", "-o", "film", cwd=tmp_path)
    (video,) = (tmp_path / "film").glob("*.mp4")
    assert video.stat().st_size > 1000


# CleanRL, by the calls that its scripts make; under its own Gymnasium too.

GYMNASIUM = Path(sys.prefix) / "gymnasium-0.29"


@pytest.mark.parametrize("gymnasium", ["1", "0.29"])
@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
@pytest.mark.parametrize("env_id", IDS)
def test_the_calls_of_cleanrl(
    env_id: str, algorithm: str, gymnasium: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if gymnasium == "0.29":
        assert GYMNASIUM.is_dir(), f"make python-rl installs Gymnasium 0.29 into {GYMNASIUM}"
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(GYMNASIUM), os.environ["PYTHONPATH"]]))
    out = run("-W", "ignore", str(HERE / "cleanrl_calls.py"), algorithm, env_id, "2400" if algorithm == "ppo" else "1200",
              "--capture-video", cwd=tmp_path)  # fmt: skip
    seen = json.loads(out.splitlines()[-1])
    assert seen["gymnasium"].startswith(gymnasium)
    assert len(seen["episodes"]) >= 1
    for total, length in seen["episodes"]:
        assert length > 1
        assert np.isfinite(total)
        assert env_id != IDS[0] or total == length
