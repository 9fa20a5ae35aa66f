"""Environments of a server for Tianshou, with the observations ``{"obs": …, "mask": …}`` that its policies expect.

::

    from tianshou.data import Collector, VectorReplayBuffer
    from clustergym.tianshou import RemoteTianshouVecEnv

    envs = RemoteTianshouVecEnv("JobSelect-v2", 16)
    collector = Collector(algorithm, envs, VectorReplayBuffer(50_000, 16))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

try:
    import gymnasium as gym
    from gymnasium import spaces
    from gymnasium.vector import AutoresetMode
    from tianshou.env.venvs import BaseVectorEnv
except ImportError as e:
    raise ImportError("clustergym.tianshou needs Tianshou: pip install 'clustergym[tianshou]'") from e

from ._copies import refuse
from .envs import RemoteEnv, batch_action
from .infos import row_info
from .vector import RemoteVectorEnv

__all__ = ["RemoteTianshouEnv", "RemoteTianshouVecEnv"]


def _space(observation: gym.Space[Any], action: gym.Space[Any]) -> gym.Space[Any]:
    """The space of observations, with the mask beside them if actions have masks."""
    if isinstance(action, spaces.Discrete):
        actions = int(action.n)
    elif isinstance(action, spaces.MultiDiscrete):
        actions = int(action.nvec.sum())
    else:
        return observation
    return spaces.Dict([("obs", observation), ("mask", spaces.MultiBinary(actions))])


class RemoteTianshouEnv(gym.Env[Any, Any]):
    """One environment whose observations are ``{"obs": …, "mask": …}``, for Tianshou's own vector environments.

    If actions have no masks, because they are real numbers, the observations are unchanged.

    Args:
        env_id: as ``"JobSelect-v2"``.
        **options: arguments of :class:`~clustergym.RemoteEnv`: ``url``, ``obs="dict"``, ….
    """

    metadata: dict[str, Any] = RemoteEnv.metadata

    __copy__ = refuse

    def __init__(self, env_id: str, **options: Any) -> None:
        self.env = RemoteEnv(env_id, **options)
        self.action_space = self.env.action_space
        self.observation_space = _space(self.env.observation_space, self.env.action_space)
        self.render_mode = self.env.render_mode
        self.metadata = self.env.metadata
        self._masked = self.observation_space is not self.env.observation_space

    def _observe(self, obs: Any) -> Any:
        return {"obs": obs, "mask": self.env.action_masks()} if self._masked else obs

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode; returns its first observation and info."""
        super().reset(seed=seed)
        obs, info = self.env.reset(seed=seed, options=options)
        return self._observe(obs), _without_mask(info)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Takes an action; returns observation, reward, terminated, truncated and info."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        return self._observe(obs), reward, terminated, truncated, _without_mask(info)

    def render(self) -> Any:
        """The environment as a picture or as text, as :meth:`RemoteEnv.render` returns it."""
        return self.env.render()

    def close(self) -> None:
        """Closes the environment. Harmless if called twice."""
        self.env.close()


class RemoteTianshouVecEnv(BaseVectorEnv):
    """n environments for Tianshou's collectors: any part of them steps in one round trip.

    Observations are like those of :class:`RemoteTianshouEnv`. A collector resets finished environments itself. Give seeds
    to ``reset(seed=…)``: a number s, with which environment i gets s + i, or one for each environment named.

    Args:
        env_id: as ``"JobSelect-v2"``.
        num_envs: how many.
        **options: arguments of :class:`~clustergym.RemoteVectorEnv`: ``url``, ``obs="dict"``, ….
    """

    __copy__ = refuse

    def __init__(self, env_id: str, num_envs: int = 1, **options: Any) -> None:
        # The base class would start a worker for each environment; here the server has all of them.
        venv = RemoteVectorEnv(env_id, num_envs, autoreset_mode=AutoresetMode.DISABLED, **options)
        space = _space(venv.single_observation_space, venv.single_action_space)
        self._venv = venv
        self._masked = space is not venv.single_observation_space
        self._shared = {
            "observation_space": space,
            "action_space": venv.single_action_space,
            "spec": venv.spec,
            "metadata": venv.metadata,
            "reward_range": (-np.inf, np.inf),
            "render_mode": venv.render_mode,
        }
        self.env_num = num_envs
        self.is_async = False
        self.is_closed = False
        self.waiting_id: list[int] = []
        self.ready_id = list(range(num_envs))

    @property
    def vector_env(self) -> RemoteVectorEnv:
        """The vector environment behind this one."""
        return self._venv

    def get_env_attr(self, key: str, id: int | Sequence[int] | npt.NDArray[Any] | None = None) -> list[Any]:
        """An attribute of each environment."""
        if key not in self._shared:
            raise AttributeError(f"a remote environment has no attribute {key!r}")
        return [self._shared[key] for _ in self._rows(id)]

    def set_env_attr(self, key: str, value: Any, id: int | Sequence[int] | npt.NDArray[Any] | None = None) -> None:
        """Always raises: the environments are on the server."""
        raise AttributeError(f"{key!r} cannot be set: the environments are on a server")

    def _rows(self, id: int | Sequence[int] | npt.NDArray[Any] | None) -> npt.NDArray[np.int32]:
        if id is None:
            return np.arange(self.env_num, dtype=np.int32)
        return np.atleast_1d(np.asarray(id, dtype=np.int32))

    def reset(
        self, env_id: int | Sequence[int] | npt.NDArray[Any] | None = None, **kwargs: Any
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Begins an episode in all environments, or in those named.

        Args:
            env_id: indices of environments.
            **kwargs: ``seed`` and ``options``, as a single environment's reset takes them.
        """
        self._assert_is_not_closed()
        rows, seed, handle = self._rows(env_id), kwargs.pop("seed", None), self._venv.handle
        fields: dict[str, Any] = {"ids": rows}
        if seed is not None:
            fields["seed"] = index(seed) if np.ndim(seed) == 0 else [None if s is None else index(s) for s in seed]
        if kwargs.get("options"):
            fields["options"] = kwargs.pop("options")
        if kwargs.keys() - {"options"}:
            raise TypeError(f"reset takes seed and options, not {', '.join(kwargs)}")
        reply = handle.request("reset", fields)
        return self._observe(reply, len(rows)), self._infos(reply, rows)

    def step(
        self, action: Any, id: int | Sequence[int] | npt.NDArray[Any] | None = None
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
        """Takes one action in each environment, or in those named; returns observations, rewards, terminations,
        truncations and infos, which have ``env_id``."""
        self._assert_is_not_closed()
        if action is None:
            raise ValueError("actions are None, but these environments do not step out of step")
        rows, handle = self._rows(id), self._venv.handle
        actions = batch_action(self._venv.single_action_space, action, len(rows))
        reply = handle.result(handle.begin_step(actions, ids=None if id is None else rows))
        infos = self._infos(reply, rows)
        for info, row in zip(infos, rows.tolist()):
            info["env_id"] = row
        obs = self._observe(reply, len(rows))
        result = obs, reply["r"].copy(), reply["te"].copy(), reply["tr"].copy(), infos
        handle.kept = None
        return result

    def _observe(self, reply: Mapping[str, Any], n: int) -> npt.NDArray[Any]:
        """n observations as Tianshou expects them: an array, with dtype object if they are dicts."""
        batch = reply["obs"]
        if self._masked:
            batch = {"obs": batch, "mask": reply["info"]["action_mask"].astype(np.bool_)}
        if not isinstance(batch, dict):
            return np.array(batch)
        out = np.empty(n, dtype=object)
        for i in range(n):
            out[i] = _pick(batch, i)
        return out

    def _infos(self, reply: Mapping[str, Any], rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        out = np.empty(len(rows), dtype=object)
        ended = reply["te"] | reply["tr"] if "te" in reply else np.zeros(len(rows), np.bool_)
        for i in range(len(rows)):
            out[i] = _without_mask(row_info(reply.get("info"), i, self._venv._blank, bool(ended[i])))
        return out

    def seed(self, seed: int | list[int] | None = None) -> list[list[int] | None]:
        """Does nothing: environments are seeded by ``reset(seed=…)``."""
        return [None] * self.env_num

    def render(self, **kwargs: Any) -> list[Any]:
        """The picture of each environment."""
        return list(self._venv.render() or [None] * self.env_num)

    def close(self) -> None:
        """Closes the environments. Harmless if called twice."""
        self._venv.close()
        self.is_closed = True


def _pick(batch: Any, i: int) -> Any:
    return {key: _pick(sub, i) for key, sub in batch.items()} if isinstance(batch, dict) else batch[i].copy()


def _without_mask(info: dict[str, Any]) -> dict[str, Any]:
    info.pop("action_mask", None)
    return info
