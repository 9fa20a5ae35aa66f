"""Tianshou: its collector over one remote vector and over single environments sees the same, and masks are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from tianshou.algorithm.modelfree.dqn import DQN, DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.utils.net.common import Net

from clustergym.tianshou import RemoteTianshouEnv, RemoteTianshouVecEnv
from conftest import SMALL


def test_one_vector_is_what_tianshou_makes_of_single_environments(url: str) -> None:
    n = 3
    remote = RemoteTianshouVecEnv("JobSelect-v1", n, url=url, kwargs=SMALL)
    single = DummyVectorEnv([lambda: RemoteTianshouEnv("JobSelect-v1", url=url, kwargs=SMALL) for _ in range(n)])
    try:
        (obs, _), pairs = remote.reset(seed=4), [single.reset([i], seed=4 + i) for i in range(n)]
        for i in range(n):
            same(obs[i], pairs[i][0][0])
        mine = np.stack([o["mask"] for o in obs])
        ids = np.arange(n)
        for step in range(150):
            if step % 3 == 2:
                ids = np.array([2, 0])  # some of them, in an order of their own
            elif step % 3 == 0:
                ids = np.arange(n)
            actions = mine[ids].argmax(axis=1)
            got, want = remote.step(actions, ids), single.step(actions, ids)
            for a, b in zip(got[0], want[0]):
                same(a, b)
            for a, b in zip(got[1:4], want[1:4]):
                assert np.array_equal(a, b)
            for a, b in zip(got[4], want[4]):
                assert a == b
            for k, i in enumerate(ids):
                mine[i] = got[0][k]["mask"]
            ended = ids[got[2] | got[3]]
            if len(ended):
                fresh, _ = remote.reset(ended)
                again, _ = single.reset(ended)
                for k, i in enumerate(ended):
                    same(fresh[k], again[k])
                    mine[i] = fresh[k]["mask"]
        assert remote.observation_space[0] == single.observation_space[0]
        assert remote.action_space == single.action_space
    finally:
        remote.close()
        single.close()


def same(a: Any, b: Any) -> None:
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            same(a[key], b[key])
    else:
        assert a.dtype == b.dtype
        assert np.array_equal(a, b)


def test_a_collector_and_a_masked_policy_never_take_an_illegal_action(url: str) -> None:
    torch.manual_seed(0)
    np.random.seed(0)
    envs = RemoteTianshouVecEnv("JobSelect-v1", 4, url=url, obs="flat", invalid="error", kwargs=SMALL)
    try:
        envs.reset(seed=1)  # later resets continue these streams
        space = envs.observation_space[0]
        assert isinstance(space, spaces.Dict)
        actions = envs.action_space[0].n
        net = Net(state_shape=space["obs"].shape, action_shape=actions, hidden_sizes=[32])
        policy = DiscreteQLearningPolicy(model=net, action_space=envs.action_space[0], eps_training=0.5)
        algorithm = DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-3))
        buffer = VectorReplayBuffer(4000, 4)
        collector = Collector(algorithm, envs, buffer, exploration_noise=True)
        result = collector.collect(n_step=800, reset_before_collect=True)
        assert result.n_collected_steps >= 800
        assert result.n_collected_episodes >= 4
        batch, _ = buffer.sample(0)
        assert batch.obs.mask[np.arange(len(batch)), batch.act].all()
        result = collector.collect(n_episode=6, reset_before_collect=True)
        assert result.n_collected_episodes == 6
    finally:
        envs.close()


def test_what_is_not_there_is_said(url: str) -> None:
    envs = RemoteTianshouVecEnv("CartPole-v1", 2, url=url)
    with pytest.raises(TypeError, match="not kind"):
        envs.reset(kind=1)
    with pytest.raises(AttributeError, match="no attribute 'color'"):
        envs.get_env_attr("color")
    envs.close()
    with pytest.raises(AssertionError, match="after close"):
        envs.reset()
