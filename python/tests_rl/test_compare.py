"""Models of Stable-Baselines3 beside heuristics, on a trace and a cluster of the user's own."""

from __future__ import annotations

import functools
import inspect
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from sb3_contrib import MaskablePPO
from sb3_contrib.common.wrappers import ActionMasker
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecEnvWrapper, VecFrameStack, VecMonitor, VecNormalize

import clustergym
import clustergym.onnx
from clustergym.sb3 import RemoteSB3VecEnv

# Windows of JobSelect-v1 take a second.
compare = functools.partial(clustergym.compare, env="JobSelect-v1")

CLUSTER = {"name": "mine", "racks": [{"nodes": [{"gpus": 4}]}]}


def own(folder: Path) -> dict[str, Any]:
    """Arguments of an environment with the trace of a file."""
    rows = [f"{30 * i},{50 + 37 * i % 400},{1 + i % 4}" for i in range(800)]
    (folder / "jobs.csv").write_text("\n".join(["submit_time,duration,num_gpu", *rows]) + "\n")
    return {
        "trace": folder / "jobs.csv", "cluster": CLUSTER, "window": 16, "warm": 8, "visible": 4, "max_gpus": 4,
        "comm": "none",
    }  # fmt: skip


@pytest.mark.parametrize("algorithm", [MaskablePPO, PPO])
@pytest.mark.parametrize("view", ["flat", "dict"])
def test_a_model_is_compared_in_one_call(tmp_path: Path, algorithm: Any, view: str, monkeypatch: Any) -> None:
    kwargs = own(tmp_path)
    envs = RemoteSB3VecEnv("JobSelect-v1", num_envs=4, obs=view, **kwargs)
    model = algorithm("MlpPolicy" if view == "flat" else "MultiInputPolicy", envs, n_steps=32, batch_size=64, seed=1)
    model.learn(128)
    envs.close()
    seen: list[tuple[Any, dict[str, Any]]] = []
    predict = type(model).predict

    def watched(self: Any, observation: Any, *args: Any, **options: Any) -> Any:
        seen.append((observation, options))
        return predict(self, observation, *args, **options)

    watched.__signature__ = inspect.signature(predict)  # type: ignore[attr-defined]
    monkeypatch.setattr(type(model), "predict", watched)
    table = compare(model, {**kwargs, "obs": view}, policies=["sjf+skip", "sjf@slots"], windows=3, show=False)
    assert [row.name for row in table] == ["model", "sjf+skip", "sjf@slots"]
    assert len(table[0].per_window) == 3
    assert isinstance(seen[0][0], np.ndarray if view == "flat" else dict)
    masked = [options["action_masks"] for _, options in seen if "action_masks" in options]
    assert len(masked) == (len(seen) if algorithm is MaskablePPO else 0)
    assert all(options["deterministic"] for _, options in seen)
    assert table["sjf+skip"].interval is not None


def test_a_mask_in_the_observation_stays_there(tmp_path: Path) -> None:
    kwargs = own(tmp_path)
    envs = RemoteSB3VecEnv("JobSelect-v1", num_envs=2, obs="dict", mask=["obs"], **kwargs)
    model = PPO("MultiInputPolicy", envs, n_steps=16, batch_size=32, seed=1)
    envs.close()
    table = compare(model, kwargs, policies=["sjf@slots"], windows=1, show=False)
    assert len(table) == 2


def test_a_model_of_another_environment_is_refused(tmp_path: Path) -> None:
    kwargs = own(tmp_path)
    envs = RemoteSB3VecEnv("JobSelect-v1", num_envs=2, obs="flat", **{**kwargs, "visible": 6})
    model = PPO("MlpPolicy", envs, n_steps=16, batch_size=32, seed=1)
    envs.close()
    with pytest.raises(clustergym.ClusterGymError, match="env and env_kwargs must be those"):
        compare(model, kwargs, policies=["sjf@slots"], windows=1)


# What a model learned behind is around it in the comparison too.

TINY = {"window": 8, "warm": 0, "cluster": "pool:4", "max_gpus": 4, "visible": 4, "trace": {"synth": {"jobs": 1000}}}
SETTINGS = {"n_steps": 16, "batch_size": 16, "n_epochs": 1, "seed": 1, "device": "cpu"}


def learned(envs: Any, policy: str = "MlpPolicy") -> Any:
    model = PPO(policy, envs, **SETTINGS)
    model.learn(64)
    return model


def played(model: Any, **options: Any) -> list[float]:
    """The JCT of each window."""
    return list(compare(model, TINY, policies=["sjf@slots"], windows=2, show=False, **options)[0].per_window)


def test_a_model_sees_through_vecnormalize_or_is_refused(tmp_path: Path) -> None:
    envs = VecNormalize(RemoteSB3VecEnv("JobSelect-v1", num_envs=2, **TINY))
    model = learned(envs)
    count = envs.obs_rms.count
    right = played(lambda seen, _: model.predict(envs.normalize_obs(seen), deterministic=True)[0])
    assert played(model) == right
    assert envs.obs_rms.count == count, "the evaluation is no training"
    assert right != played(model, transform=False), "this shows nothing"
    model.save(tmp_path / "model")
    envs.save(str(tmp_path / "vec.pkl"))
    lost = PPO.load(tmp_path / "model", device="cpu")
    for refused in (lambda: played(lost), lambda: clustergym.onnx.export(lost, tmp_path / "lost.onnx")):
        with pytest.raises(clustergym.ClusterGymError, match="behind VecNormalize, whose statistics it lost"):
            refused()
    for given in (tmp_path / "vec.pkl", envs, envs.normalize_obs):
        assert played(lost, transform=given) == right
    again = VecNormalize.load(str(tmp_path / "vec.pkl"), RemoteSB3VecEnv("JobSelect-v1", num_envs=1, **TINY))
    assert played(PPO.load(tmp_path / "model", env=again, device="cpu")) == right
    clustergym.onnx.export(lost, tmp_path / "given.onnx", transform=tmp_path / "vec.pkl")
    clustergym.onnx.export(model, tmp_path / "own.onnx")
    assert (tmp_path / "given.onnx").stat().st_size == pytest.approx((tmp_path / "own.onnx").stat().st_size, rel=0.01)
    envs.close()


def test_a_model_whose_rewards_alone_were_normalised_has_lost_nothing(tmp_path: Path) -> None:
    envs = VecNormalize(RemoteSB3VecEnv("JobSelect-v1", num_envs=2, **TINY), norm_obs=False)
    model = learned(envs)
    model.save(tmp_path / "model")
    envs.close()
    assert played(PPO.load(tmp_path / "model", device="cpu")) == played(model)


class Halved(VecEnvWrapper):
    """A wrapper of somebody's own."""

    def reset(self) -> Any:
        return self.venv.reset() / 2

    def step_wait(self) -> Any:
        obs, *rest = self.venv.step_wait()
        return obs / 2, *rest


def test_a_model_sees_stacks_and_wrappers_of_vectors(tmp_path: Path) -> None:
    envs = VecFrameStack(VecMonitor(RemoteSB3VecEnv("JobSelect-v1", num_envs=2, **TINY)), 3)
    model = learned(envs)
    frames: list[Any] = []

    def act(seen: Any, _: Any) -> Any:
        frames[:] = [*(frames or [np.zeros_like(seen)] * 3)[1:], seen]
        return model.predict(np.concatenate(frames), deterministic=True)[0]

    assert played(model) == played(act, reset=frames.clear)
    with pytest.raises(TypeError, match="VecFrameStack"):
        clustergym.onnx.export(model, tmp_path / "stack.onnx")
    envs.close()
    model = learned(Halved(RemoteSB3VecEnv("JobSelect-v1", num_envs=2, **TINY)))
    assert played(model) == played(lambda seen, _: model.predict(seen / 2, deterministic=True)[0])
    with pytest.warns(UserWarning, match="behind Halved, which is left out"):
        clustergym.onnx.export(model, tmp_path / "halved.onnx")


W = gym.wrappers
SINGLE: dict[str, tuple[Any, dict[str, Any], Any]] = {
    "FlattenObservation": (
        W.FlattenObservation,
        {"obs": "dict"},
        lambda seen: np.concatenate([part.ravel() for part in seen.values()]),
    ),
    "TransformObservation": (
        lambda env: W.TransformObservation(env, lambda seen: 1 - seen, env.observation_space),
        {},
        lambda seen: 1 - seen,
    ),
    "none that matters": (lambda env: W.ClipReward(W.TimeLimit(env, 3), -1, 1), {}, lambda seen: seen),
}


@pytest.mark.parametrize("name", SINGLE)
def test_a_model_sees_through_wrappers_of_gymnasium(name: str) -> None:
    wrap, view, same = SINGLE[name]
    model = learned(make_vec_env("clustergym/JobSelect-v1", 2, env_kwargs={**TINY, **view}, wrapper_class=wrap))
    assert played(model) == played(
        lambda seen, _: model.predict(same(seen), deterministic=True)[0], obs=view.get("obs")
    )


def test_running_statistics_of_gymnasium_stay_as_they_are_and_masks_are_the_maskers(tmp_path: Path) -> None:
    envs = make_vec_env("clustergym/JobSelect-v1", 1, env_kwargs=TINY, wrapper_class=W.NormalizeObservation)
    model = learned(envs)
    wrapper = envs.envs[0]  # type: ignore[attr-defined]
    while not isinstance(wrapper, W.NormalizeObservation):
        wrapper = wrapper.env
    rms = wrapper.obs_rms
    before = rms.mean.copy(), rms.var.copy(), rms.count

    def act(seen: Any, _: Any) -> Any:
        return model.predict((seen - rms.mean) / np.sqrt(rms.var + wrapper.epsilon), deterministic=True)[0]

    assert played(model) == played(act)
    assert np.array_equal(rms.mean, before[0])
    assert rms.count == before[2]
    assert wrapper.update_running_mean
    with pytest.raises(TypeError, match="NormalizeObservation"):
        clustergym.onnx.export(model, tmp_path / "scaled.onnx")

    def first(env: Any) -> Any:  # the oldest legal job alone
        mask = env.unwrapped.action_masks()
        return mask & (np.arange(len(mask)) == mask.argmax())

    masked = make_vec_env(
        "clustergym/JobSelect-v1", 1, env_kwargs=TINY, wrapper_class=lambda env: ActionMasker(env, lambda _: first(env))
    )
    model = MaskablePPO("MlpPolicy", masked, **SETTINGS)
    assert played(model) == played(lambda _, mask: int(mask.argmax()))
