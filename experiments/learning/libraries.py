"""Stable-Baselines3, SBX and sb3-contrib's MaskablePPO, at the settings of a problem."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import play
from problems import MASKABLE, SBX
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize


class _Watch(BaseCallback):
    """Tells a run what step the training is at."""

    def __init__(self, run: play.Run) -> None:
        super().__init__()
        self.run = run

    def _on_rollout_start(self) -> None:
        self.run.update_begins(self.num_timesteps)

    def _on_step(self) -> bool:
        self.run.stepped(self.num_timesteps)
        return True


def _linear(start: float, falls: bool) -> Any:
    return (lambda left: left * start) if falls else start


def ppo_options(s: dict[str, Any]) -> dict[str, Any]:
    """The arguments of these libraries' PPO."""
    options: dict[str, Any] = {
        "n_steps": s["steps"], "batch_size": s["batch"], "n_epochs": s["epochs"], "gamma": s["gamma"],
        "gae_lambda": s["lam"], "ent_coef": s["ent"], "learning_rate": _linear(s["lr"], s["anneal_lr"]),
        "clip_range": _linear(s["clip"], s["anneal_clip"]),
        "clip_range_vf": s["clip_value"] or None,
    }  # fmt: skip
    return options


def dqn_options(s: dict[str, Any]) -> dict[str, Any]:
    """The arguments of these libraries' DQN, whose loss is Huber's."""
    if not s["huber"]:
        raise ValueError("the libraries' DQN has Huber's loss alone")
    return {
        "learning_rate": s["lr"], "batch_size": s["batch"], "buffer_size": s["buffer"], "learning_starts": s["starts"],
        "gamma": s["gamma"], "target_update_interval": s["target_every"], "train_freq": s["train_every"],
        "gradient_steps": s["gradient_steps"], "exploration_fraction": s["eps_share"],
        "exploration_final_eps": s["eps_end"],
    }  # fmt: skip


def build(job: dict[str, Any], env: Any) -> Any:
    """The model of job's library, algorithm and settings."""
    s = job["settings"]
    ppo = job["algorithm"] == "ppo"
    kwargs: dict[str, Any] = {"net_arch": list(s["hidden"])}
    options = (ppo_options if ppo else dqn_options)(s)
    if job["implementation"] == SBX:
        import sbx

        if ppo:  # its default is the same tanh network
            del options["clip_range_vf"]
        return (sbx.PPO if ppo else sbx.DQN)("MlpPolicy", env, policy_kwargs=kwargs, seed=job["seed"], **options)
    import torch

    torch.set_num_threads(1)
    if job["implementation"] == MASKABLE:
        from sb3_contrib import MaskablePPO as algorithm
    else:
        import stable_baselines3 as sb3

        algorithm = sb3.PPO if ppo else sb3.DQN
        if not ppo:
            options["max_grad_norm"] = s["max_grad_norm"]
    return algorithm("MlpPolicy", env, policy_kwargs=kwargs, seed=job["seed"], device="cpu", **options)


def _snapshots(model: Any, sbx: bool, env: Any) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    """How to copy what plays, and how to put it back."""
    normal = env if isinstance(env, VecNormalize) else None
    states = [n for n in ("actor_state", "vf_state", "qf_state") if hasattr(model.policy, n)] if sbx else []

    def keep() -> Any:
        seen = copy.deepcopy(normal.obs_rms) if normal else None
        if sbx:  # the states of JAX never change, others take their place
            return seen, {n: getattr(model.policy, n) for n in states}
        return seen, copy.deepcopy(model.policy.state_dict())

    def restore(kept: Any) -> None:
        if normal:
            normal.obs_rms = kept[0]
        if sbx:
            for name, state in kept[1].items():
                setattr(model.policy, name, state)
        else:
            model.policy.load_state_dict(kept[1])

    return keep, restore


def train(job: dict[str, Any]) -> dict[str, Any]:
    """Trains on Gymnasium's environments, stepped one after the other as these libraries do."""
    if job["implementation"] == MASKABLE:
        return train_masked(job)
    s = job["settings"]
    env: Any = make_vec_env(job["env"], n_envs=s.get("envs", 1), seed=job["seed"])
    if s.get("normalize"):
        env = VecNormalize(env, gamma=s["gamma"])
    model = build(job, env)

    def act(obs: Any) -> Any:
        if isinstance(env, VecNormalize):
            obs = env.normalize_obs(obs)
        return model.predict(obs, deterministic=True)[0]

    keep, restore = _snapshots(model, job["implementation"] == SBX, env)
    run = play.Run(job, lambda n, first: play.episodes(act, job["env"], n, first), keep, restore)
    model.learn(job["budget"], callback=_Watch(run))
    return run.finish(model.num_timesteps)


def train_masked(job: dict[str, Any]) -> dict[str, Any]:
    """Trains MaskablePPO on environments of a server beside it; masks come with every step."""
    from gymnasium.vector import AutoresetMode

    from clustergym import LocalServer, RemoteVectorEnv
    from clustergym.sb3 import RemoteSB3VecEnv

    with LocalServer() as server:
        options: dict[str, Any] = {"url": server.url}
        env = RemoteSB3VecEnv(job["env"], job["settings"]["envs"], **options)
        model = build(job, env)

        def episodes(n: int, first: int) -> list[float]:
            envs = RemoteVectorEnv(job["env"], n, autoreset_mode=AutoresetMode.SAME_STEP, **options)
            try:
                obs, info = envs.reset(seed=[first + i for i in range(n)])
                returns, running = np.zeros(n), np.ones(n, bool)
                while running.any():
                    masks = np.asarray(info["action_mask"], bool)
                    actions = model.predict(obs, deterministic=True, action_masks=masks)[0]
                    obs, reward, terminated, truncated, info = envs.step(actions)
                    returns += np.where(running, reward, 0.0)
                    running &= ~(terminated | truncated)
            finally:
                envs.close()
            return [float(r) for r in returns]

        keep, restore = _snapshots(model, False, env)
        run = play.Run(job, episodes, keep, restore)
        try:
            model.learn(job["budget"], callback=_Watch(run))
            return run.finish(model.num_timesteps)
        finally:
            env.close()
