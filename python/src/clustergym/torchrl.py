"""Environments of a server as TorchRL has them, with random and learned actions kept to the legal ones.

::

    from clustergym.torchrl import torchrl_env

    env = torchrl_env("JobSelect-v2", num_envs=16)
    rollout = env.rollout(100, break_when_any_done=False)   # TensorDict of [16, 100]

A policy masks its logits with the entry ``action_mask`` (bool): ``MaskedCategorical`` of TorchRL takes it as ``mask``.
"""

from __future__ import annotations

from typing import Any

try:
    import torch
    from gymnasium import spaces
    from gymnasium.vector import AutoresetMode
    from torchrl.envs import ActionMask, DTypeCastTransform, EnvBase, GymWrapper, TransformedEnv
except ImportError as e:
    raise ImportError("clustergym.torchrl needs TorchRL and PyTorch: pip install 'clustergym[torchrl]'") from e

from .envs import RemoteEnv
from .vector import RemoteVectorEnv

__all__ = ["torchrl_env"]

MASK = "action_mask"


def torchrl_env(
    env_id: str, num_envs: int | None = None, *, device: str | torch.device = "cpu", **options: Any
) -> EnvBase:
    """One environment, or a batch of them that steps in one round trip.

    Actions are categorical: a number, not one-hot. TorchRL resets finished environments itself; the others of a batch
    go on undisturbed.

    Args:
        env_id: as ``"JobSelect-v2"``.
        num_envs: how many; None is one with an empty batch size.
        device: where its tensors live.
        **options: arguments of :class:`~clustergym.RemoteEnv` or :class:`~clustergym.RemoteVectorEnv`. The mask is a
            field of the observation unless ``mask`` or ``obs`` says otherwise.
    """
    if options.get("obs") in (None, "dict"):
        options.setdefault("mask", ["obs"])
    if num_envs is None:
        env: Any = RemoteEnv(env_id, **options)
        observation, action = env.observation_space, env.action_space
    else:
        env = RemoteVectorEnv(env_id, num_envs, autoreset_mode=AutoresetMode.DISABLED, **options)
        observation, action = env.single_observation_space, env.single_action_space
    wrapped = GymWrapper(env, device=device, categorical_action_encoding=True)
    masked = isinstance(observation, spaces.Dict) and MASK in observation.spaces
    if not masked or not isinstance(action, spaces.Discrete | spaces.MultiDiscrete):
        return wrapped
    cast = TransformedEnv(wrapped, DTypeCastTransform(torch.uint8, torch.bool, in_keys=[MASK]))
    return cast.append_transform(ActionMask(mask_key=MASK))
