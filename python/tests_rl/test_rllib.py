"""RLlib: PPO with masks over one vector of environments for each env runner, on one Ray node and on two."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import ray
import rllib_ppo
import rllib_two_nodes
import torch
from gymnasium import spaces
from ray.rllib.core.columns import Columns

from clustergym import RemoteEnv, RemoteVectorEnv
from clustergym.rllib import ActionMaskPPOModule, rllib_env_creator
from conftest import SMALL

JOBSELECT = ["--env", "JobSelect-v1", "--kwargs", json.dumps(SMALL)]


def patiently(run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Ray gives its processes 30 seconds to start, which a busy machine may need longer for: three times then."""
    for _ in range(2):
        try:
            return run()
        except Exception as error:
            if "timed out during startup" not in str(error):
                raise
            ray.shutdown()
            time.sleep(5)
    return run()


def test_a_config_makes_one_environment_or_a_vector(url: str) -> None:
    one = rllib_env_creator({"env": "JobSelect-v1", "url": url, "kwargs": SMALL})
    many = rllib_env_creator({"env": "JobSelect-v1", "url": url, "kwargs": SMALL, "num_envs": 3})
    try:
        assert isinstance(one, RemoteEnv)
        assert isinstance(many, RemoteVectorEnv)
        assert many.num_envs == 3
        assert "action_mask" in one.observation_space.spaces
        assert many.metadata["autoreset_mode"] is gym.vector.AutoresetMode.NEXT_STEP
    finally:
        one.close()
        many.close()
    with pytest.raises(ValueError, match="names no environment"):
        rllib_env_creator({"url": url})


def test_an_illegal_action_has_no_probability() -> None:
    space = spaces.Dict([
        ("action_mask", spaces.Box(0, 1, (4,), np.uint8)),
        ("image", spaces.Box(0, 1, (2, 3), np.float32)),
        ("vector", spaces.Box(0, 1, (5,), np.float32)),
    ])  # fmt: skip
    torch.manual_seed(0)
    module = ActionMaskPPOModule(
        observation_space=space, action_space=spaces.Discrete(4), model_config={"fcnet_hiddens": [8]}
    )
    assert module.observation_space == space
    mask = torch.tensor([[1, 0, 1, 0], [0, 0, 0, 1]], dtype=torch.uint8)
    batch = {Columns.OBS: {"action_mask": mask, "image": torch.rand(2, 2, 3), "vector": torch.rand(2, 5)}}
    for forward in (module.forward_inference, module.forward_exploration, module.forward_train):
        out = forward(batch)
        p = torch.softmax(out[Columns.ACTION_DIST_INPUTS], dim=1)
        assert torch.equal(p > 0, mask > 0), forward
        assert set(batch[Columns.OBS]) == {"action_mask", "image", "vector"}, "the batch was changed"
    assert module.compute_values(batch).shape == (2,)
    with pytest.raises(ValueError, match="action_mask"):
        ActionMaskPPOModule(observation_space=spaces.Box(0, 1, (3,)), action_space=spaces.Discrete(4))


def test_ppo_of_rllib_learns_on_one_node(url: str) -> None:
    flags = ["--runners", "1", "--envs", "8", "--steps", "12000", "--batch", "1600", "--gamma", "0.4", "--lr", "0.003"]
    result = patiently(lambda: rllib_ppo.main(["--env", "InvalidAction-v1", "--url", url, *flags]))
    # Random legal play gets 5 of 100.
    assert result["last"]["return"] > result["first"]["return"] + 10, result


def test_ppo_of_rllib_trains_on_two_nodes_each_with_a_server_of_its_own() -> None:
    flags = ["--runners", "2", "--envs", "4", "--steps", "2000", "--batch", "1000"]
    result = patiently(lambda: rllib_two_nodes.main([*JOBSELECT, *flags]))
    assert len(set(result["servers"])) == 2, result
    assert result["last"]["steps"] >= 2000
    assert np.isfinite(result["last"]["return"])
