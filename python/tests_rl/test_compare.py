"""Models of Stable-Baselines3 beside heuristics, on a trace and a cluster of the user's own."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO

import clustergym
from clustergym.sb3 import RemoteSB3VecEnv

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
    table = clustergym.compare(
        model, {**kwargs, "obs": view}, policies=["sjf+skip", "sjf@slots"], windows=3, show=False
    )
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
    table = clustergym.compare(model, kwargs, policies=["sjf@slots"], windows=1, show=False)
    assert len(table) == 2


def test_a_model_of_another_environment_is_refused(tmp_path: Path) -> None:
    kwargs = own(tmp_path)
    envs = RemoteSB3VecEnv("JobSelect-v1", num_envs=2, obs="flat", **{**kwargs, "visible": 6})
    model = PPO("MlpPolicy", envs, n_steps=16, batch_size=32, seed=1)
    envs.close()
    with pytest.raises(clustergym.ClusterGymError, match="env and env_kwargs must be those"):
        clustergym.compare(model, kwargs, policies=["sjf@slots"], windows=1)
