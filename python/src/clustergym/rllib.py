"""Environments of a server for RLlib: a creator, servers on every node, and masked actions.

::

    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec
    from clustergym.rllib import ActionMaskPPOModule, register

    config = (
        PPOConfig()
        .environment(register(), env_config={"env": "JobSelect-v2"})
        .env_runners(num_envs_per_env_runner=16, gym_env_vectorize_mode="vector_entry_point")
        .rl_module(rl_module_spec=RLModuleSpec(module_class=ActionMaskPPOModule))
    )
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

try:
    import gymnasium
    import ray
    import torch
    from gymnasium import spaces
    from ray.rllib.algorithms.ppo.torch.default_ppo_torch_rl_module import DefaultPPOTorchRLModule
    from ray.rllib.core.columns import Columns
    from ray.tune.registry import register_env
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
except ImportError as e:
    raise ImportError("clustergym.rllib needs RLlib and PyTorch: pip install 'clustergym[rllib]' torch") from e

from .envs import RemoteEnv
from .server import LocalServer
from .vector import RemoteVectorEnv

__all__ = ["ActionMaskPPOModule", "NodeServers", "register", "rllib_env_creator"]

MASK = "action_mask"

# Added to the logits of illegal actions: far below any logit, and far from the end of float32.
_NEVER = -1e8


def register(name: str = "clustergym") -> str:
    """Registers :func:`rllib_env_creator` with Ray, and returns the name for RLlib's ``environment(…)``."""
    register_env(name, rllib_env_creator)
    return name


def rllib_env_creator(config: Mapping[str, Any]) -> gymnasium.Env[Any, Any] | gymnasium.vector.VectorEnv[Any, Any, Any]:
    """An environment from RLlib's ``env_config``.

    Args:
        config: ``env`` is the environment's id. ``urls`` are servers by Ray node (see :class:`NodeServers`), of which an
            env runner takes that of its node. All else goes to :class:`~clustergym.RemoteEnv`: ``url``, ``token``,
            ``kwargs``, …. The mask is a field of the observation unless ``mask`` or ``obs`` says otherwise. With
            ``gym_env_vectorize_mode="vector_entry_point"`` RLlib adds ``num_envs`` and gets a
            :class:`~clustergym.RemoteVectorEnv`, which steps all environments of an env runner in one round trip.

    Raises:
        ValueError: there is no ``env``, or ``urls`` has no server for this node.
    """
    options = dict(config)
    try:
        env_id = options.pop("env")
    except KeyError:
        raise ValueError("env_config names no environment: want {'env': 'JobSelect-v2', …}") from None
    num_envs = options.pop("num_envs", None)
    urls = options.pop("urls", None)
    if urls is not None:
        node = ray.get_runtime_context().get_node_id()
        if node not in urls:
            raise ValueError(f"urls names no server on Ray node {node}, only on {', '.join(urls) or 'none'}")
        options["url"] = urls[node]
    if options.get("obs") in (None, "dict"):
        options.setdefault("mask", ["obs"])
    if num_envs is None:
        return RemoteEnv(env_id, **options)
    return RemoteVectorEnv(env_id, num_envs, **options)


class NodeServers:
    """A ``gymctl serve`` on every node of the Ray cluster, for the env runners of that node.

    ``urls`` goes into ``env_config``. The servers listen on loopback addresses, so no token is needed. They end with
    :meth:`stop`, with the ``with`` statement that holds this object, and with the driver.

    Args:
        args: more arguments of ``gymctl serve``.
        timeout: seconds until all of them must run.
    """

    def __init__(self, args: Sequence[str] = (), timeout: float = 180.0) -> None:
        hosts = ray.remote(num_cpus=0)(_Host)
        self._hosts: dict[str, Any] = {
            node["NodeID"]: hosts.options(
                scheduling_strategy=NodeAffinitySchedulingStrategy(node_id=node["NodeID"], soft=False)
            ).remote(list(args), timeout)
            for node in ray.nodes()
            if node["Alive"]
        }
        asked = [host.url.remote() for host in self._hosts.values()]
        try:
            self.urls: dict[str, str] = dict(zip(self._hosts, ray.get(asked, timeout=timeout), strict=True))
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends the servers. Harmless if called twice."""
        stopped = [host.stop.remote() for host in self._hosts.values()]
        self._hosts = {}
        if stopped:
            ray.wait(stopped, num_returns=len(stopped), timeout=30)

    def __enter__(self) -> NodeServers:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class _Host:
    """Runs on a node and owns the server there."""

    def __init__(self, args: Sequence[str], timeout: float) -> None:
        self._server = LocalServer(args, timeout)

    def url(self) -> str:
        return self._server.url

    def stop(self) -> None:
        self._server.close()


class ActionMaskPPOModule(DefaultPPOTorchRLModule):
    """PPO's default network over all fields of a Dict observation as one vector, with illegal actions masked.

    The field ``action_mask`` is not an input of the network. It sets the probability of illegal actions to zero, while
    acting and while learning.
    """

    def __init__(self, *, observation_space: gymnasium.Space[Any], **kwargs: Any) -> None:
        if not isinstance(observation_space, spaces.Dict) or MASK not in observation_space.spaces:
            raise ValueError(
                f"ActionMaskPPOModule needs a Dict observation with the field {MASK}, got {observation_space}; "
                "make the environment with rllib_env_creator and its defaults"
            )
        self._fields = [key for key in observation_space.spaces if key != MASK]
        size = sum(int(np.prod(observation_space[key].shape or ())) for key in self._fields)
        flat = spaces.Box(-np.inf, np.inf, (size,), np.float32)
        super().__init__(observation_space=flat, **kwargs)
        # Checkpoints and connectors look here for what the environment sends.
        self.observation_space = observation_space

    def _flat(self, batch: dict[str, Any]) -> tuple[dict[str, Any], torch.Tensor]:
        """The batch with one vector as observation, and the masks."""
        obs = batch[Columns.OBS]
        mask = obs[MASK]
        # Batches have one leading axis.
        fields = [obs[key].reshape(obs[key].shape[0], -1).float() for key in self._fields]
        return {**batch, Columns.OBS: torch.cat(fields, dim=1)}, mask

    def _masked(self, out: dict[str, Any], mask: torch.Tensor) -> dict[str, Any]:
        logits = out[Columns.ACTION_DIST_INPUTS]
        out[Columns.ACTION_DIST_INPUTS] = torch.where(mask > 0, logits, torch.full_like(logits, _NEVER))
        return out

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        batch, mask = self._flat(batch)
        return self._masked(super()._forward(batch, **kwargs), mask)

    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        batch, mask = self._flat(batch)
        return self._masked(super()._forward_train(batch, **kwargs), mask)

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Any:
        """The values of a batch's observations."""
        return super().compute_values(self._flat(batch)[0], embeddings)
