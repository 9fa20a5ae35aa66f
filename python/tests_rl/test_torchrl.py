"""TorchRL: its checker of specs, alone and batched, and masks that random actions keep to."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torchrl.envs import GymEnv, GymWrapper, check_env_specs

from clustergym import RemoteVectorEnv
from clustergym.torchrl import torchrl_env
from conftest import IDS, SMALL, kwargs_of


@pytest.mark.parametrize("num_envs", [None, 3])
@pytest.mark.parametrize("env_id", IDS)
def test_specs_are_kept(url: str, env_id: str, num_envs: int | None) -> None:
    torch.manual_seed(0)
    env = torchrl_env(env_id, num_envs, url=url, kwargs=kwargs_of(env_id))
    try:
        env.set_seed(1)  # later resets continue this stream
        check_env_specs(env)
        rollout = env.rollout(250, break_when_any_done=False)
        assert rollout.batch_size == torch.Size([250] if num_envs is None else [num_envs, 250])
        if "action_mask" in rollout.keys():  # noqa: SIM118 - a TensorDict has no "in"
            assert rollout["action_mask"].dtype == torch.bool
            assert rollout["action_mask"].gather(-1, rollout["action"].unsqueeze(-1)).all()
    finally:
        env.close()


def test_a_finished_environment_is_reset_alone(url: str) -> None:
    env = torchrl_env("JobSelect-v1", 4, url=url, kwargs=SMALL)
    try:
        torch.manual_seed(1)
        env.set_seed(1)
        rollout = env.rollout(300, break_when_any_done=False)
        done = rollout["next", "done"].squeeze(-1)
        assert 4 <= done.sum() < 40
        assert not done.all(dim=0).any(), "all ended at once: this shows nothing"
        # Where an episode goes on, the next observation is the one that the step gave.
        on = ~done[:, :-1]
        for key in ("cluster", "queue", "jobs", "global"):
            assert torch.equal(rollout[key][:, 1:][on], rollout["next", key][:, :-1][on])
    finally:
        env.close()


def test_rewards_are_those_of_the_vector_environment(url: str) -> None:
    env = torchrl_env("JobSelect-v1", 2, url=url, kwargs=SMALL)
    same = RemoteVectorEnv("JobSelect-v1", 2, url, kwargs=SMALL)
    try:
        torch.manual_seed(2)
        env.set_seed(9)
        rollout = env.rollout(20)
        same.reset(seed=9)
        same.reset()  # TorchRL seeds by a reset, and its rollout begins with another
        rewards = np.stack([same.step(actions.numpy())[1] for actions in rollout["action"].T], axis=1)
        assert np.allclose(rewards, rollout["next", "reward"].squeeze(-1).numpy())
        assert np.ptp(rewards) > 0
    finally:
        env.close()
        same.close()


@pytest.mark.parametrize(
    "env_id", ["JobSelect-v1", "CartPole-v1", "QueueRank-v1", "DAGPlace-v1", "Nav2D-v1", "PolicyMix-v1"]
)
def test_torchrls_own_environments_by_id_roll_out(env_id: str, url: str) -> None:
    env = GymEnv(f"clustergym/{env_id}", url=url)
    assert env.rollout(60, break_when_any_done=False).shape == (60,)
    env.close()


def test_frames_are_skipped_and_drawn_by_torchrl(url: str) -> None:
    env = GymEnv("clustergym/JobSelect-v1", url=url, frame_skip=4, window=8, warm=0)
    assert env.wrapper_frame_skip == 4
    env.close()
    env = GymEnv("clustergym/JobSelect-v1", url=url, from_pixels=True, pixels_only=False, window=8, warm=0)
    assert env.rollout(3)["pixels"].shape == (3, 480, 640, 3)
    env.close()
    with pytest.raises(TypeError, match="unexpected keyword argument 'windw': windw: unknown key; did you mean window"):
        GymEnv("clustergym/JobSelect-v1", url=url, windw=8)


@pytest.mark.parametrize("mode", ["SameStep", "Disabled"])
@pytest.mark.parametrize("info", ["metrics", "episode", "all", "none"])
def test_torchrl_reads_the_infos_of_a_batch(mode: str, info: str, url: str) -> None:
    envs = RemoteVectorEnv("JobSelect-v1", 2, url, autoreset_mode=mode, info=info, window=8, warm=0)
    env = GymWrapper(envs)
    assert env.rollout(60, break_when_any_done=False).shape == (2, 60)
    env.close()
