"""The calls that CleanRL's ppo.py and dqn.py make of an environment, in their order, without the learning.

    python cleanrl_calls.py ppo clustergym/JobSelect-v1 600

runs under Gymnasium 1 and under 0.29, which CleanRL pins, and prints what it saw as JSON. With Gymnasium 1, whose vector
environments reset in the next step, the end of an episode is in ``infos["episode"]``, else in ``infos["final_info"]``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3.common.buffers import ReplayBuffer
from torch import nn

import clustergym  # noqa: F401 - registers the environments

N = 3  # environments of ppo; dqn has one


def make_env(env_id: str, idx: int, capture_video: bool) -> Callable[[], Any]:
    def thunk() -> Any:
        env = gym.make(env_id, render_mode="rgb_array") if capture_video and idx == 0 else gym.make(env_id)
        env = gym.wrappers.RecordEpisodeStatistics(env)
        env.action_space.seed(idx)
        return env

    return thunk


def ends(infos: dict[str, Any]) -> list[tuple[float, int]]:
    """Returns and lengths of the episodes that ended in a step, in both places where scripts look for them."""
    found = []
    for info in infos.get("final_info", ()):
        if info and "episode" in info:
            found.append((float(np.ravel(info["episode"]["r"])[0]), int(np.ravel(info["episode"]["l"])[0])))
    if "episode" in infos:
        for i in np.flatnonzero(infos["_episode"]):
            found.append((float(infos["episode"]["r"][i]), int(infos["episode"]["l"][i])))
    return found


def network(envs: Any, outputs: int) -> nn.Sequential:
    inputs = np.array(envs.single_observation_space.shape).prod()
    return nn.Sequential(nn.Linear(inputs, 16), nn.Tanh(), nn.Linear(16, outputs))


def ppo(env_id: str, steps: int, capture_video: bool) -> list[tuple[float, int]]:
    envs = gym.vector.SyncVectorEnv([make_env(env_id, i, capture_video) for i in range(N)])
    assert isinstance(envs.single_action_space, gym.spaces.Discrete)
    actor = network(envs, int(envs.single_action_space.n))
    rows = steps // N
    obs = torch.zeros((rows, N, *envs.single_observation_space.shape))
    actions = torch.zeros((rows, N, *envs.single_action_space.shape))
    rewards, dones = torch.zeros((rows, N)), torch.zeros((rows, N))
    next_obs, _ = envs.reset(seed=1)
    next_done = torch.zeros(N)
    found = []
    for step in range(rows):
        obs[step], dones[step] = torch.Tensor(next_obs), next_done
        with torch.no_grad():
            action = torch.distributions.Categorical(logits=actor(obs[step])).sample()
        actions[step] = action
        next_obs, reward, terminations, truncations, infos = envs.step(action.cpu().numpy())
        next_done = torch.Tensor(np.logical_or(terminations, truncations))
        rewards[step] = torch.tensor(reward).view(-1)
        found += ends(infos)
    assert actor(obs.reshape((-1, *envs.single_observation_space.shape))).isfinite().all()
    envs.close()
    return found


def dqn(env_id: str, steps: int, capture_video: bool) -> list[tuple[float, int]]:
    envs = gym.vector.SyncVectorEnv([make_env(env_id, 0, capture_video)])
    q_network = network(envs, int(envs.single_action_space.n))
    rb = ReplayBuffer(
        steps, envs.single_observation_space, envs.single_action_space, "cpu", handle_timeout_termination=False
    )
    obs, _ = envs.reset(seed=1)
    found = []
    for step in range(steps):
        if step % 2:
            actions = np.array([envs.single_action_space.sample() for _ in range(envs.num_envs)])
        else:
            actions = torch.argmax(q_network(torch.Tensor(obs)), dim=1).numpy()
        next_obs, rewards, terminations, truncations, infos = envs.step(actions)
        found += ends(infos)
        real_next_obs = next_obs.copy()
        for idx, truncated in enumerate(truncations):
            if truncated and "final_observation" in infos:
                real_next_obs[idx] = infos["final_observation"][idx]
        rb.add(obs, real_next_obs, actions, rewards, terminations, [infos])
        obs = next_obs
    data = rb.sample(32)
    assert q_network(data.next_observations).gather(1, data.actions).isfinite().all()
    envs.close()
    return found


if __name__ == "__main__":
    which, env_id, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
    torch.manual_seed(1)
    seen = {"ppo": ppo, "dqn": dqn}[which](env_id, steps, "--capture-video" in sys.argv)
    print(json.dumps({"gymnasium": gym.__version__, "episodes": seen}))
