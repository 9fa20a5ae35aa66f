"""An environment of a server with the interface of ``dm_env``.

::

    from clustergym.dm import RemoteDmEnv

    env = RemoteDmEnv("JobSelect-v2")
    step = env.reset()
    while not step.last():
        step = env.step(choose(step.observation))   # the mask is step.observation["action_mask"]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    import dm_env
    import gymnasium
    from dm_env import specs
    from gymnasium import spaces
except ImportError as e:
    raise ImportError("clustergym.dm needs dm_env: pip install 'clustergym[dm]'") from e

from ._copies import refuse
from .envs import RemoteEnv

__all__ = ["RemoteDmEnv"]


class RemoteDmEnv(dm_env.Environment):
    """One environment as ``dm_env`` has them: FIRST, MID and LAST steps, with discounts.

    The discount is 0 if the step terminates the episode, else 1, also if the episode is truncated. A step before the first
    reset and the step after LAST begin an episode and ignore their action.

    Args:
        env: an environment's id, as ``"JobSelect-v2"``, or a Gymnasium environment, which this object then owns.
        seed: of the first episode, which decides the seeds of later ones.
        **options: arguments of :class:`~clustergym.RemoteEnv`, if an id is given. The mask is a field of the observation
            (``action_mask``, uint8) unless ``mask`` or ``obs`` says otherwise.
    """

    __copy__ = refuse

    def __init__(self, env: str | gymnasium.Env[Any, Any], seed: int | None = None, **options: Any) -> None:
        if isinstance(env, str):
            if options.get("obs") in (None, "dict"):
                options.setdefault("mask", ["obs"])
            env = RemoteEnv(env, **options)
        elif options:
            raise ValueError("options belong to an environment's id: an environment has its own")
        self._env = env
        self._seed = seed
        self._fresh = True  # the next step starts an episode
        self._observation_spec = _spec(env.observation_space, "observation")
        self._action_spec = _spec(env.action_space, "action")

    @property
    def gymnasium_env(self) -> gymnasium.Env[Any, Any]:
        """The environment behind this one."""
        return self._env

    def reset(self) -> dm_env.TimeStep:
        """Begins an episode."""
        obs, _ = self._env.reset(seed=self._seed)
        self._seed, self._fresh = None, False
        return dm_env.restart(obs)

    def step(self, action: Any) -> dm_env.TimeStep:
        """Takes an action, or begins an episode if none is under way."""
        if self._fresh:
            return self.reset()
        obs, reward, terminated, truncated, _ = self._env.step(action)
        self._fresh = terminated or truncated
        if terminated:
            return dm_env.termination(float(reward), obs)
        if truncated:
            return dm_env.truncation(float(reward), obs)
        return dm_env.transition(float(reward), obs)

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions are legal now, bool [actions]."""
        masks: NDArray[np.bool_] = self._env.get_wrapper_attr("action_masks")()
        return masks

    def observation_spec(self) -> Any:
        """The specs of observations: one, or a dict of them."""
        return self._observation_spec

    def action_spec(self) -> Any:
        """The specs of actions."""
        return self._action_spec

    def close(self) -> None:
        """Closes the environment. Harmless if called twice."""
        self._env.close()


def _spec(space: gymnasium.Space[Any], name: str) -> Any:
    """The spec, or nest of specs, that is equivalent to space."""
    if isinstance(space, spaces.Dict):
        return {key: _spec(sub, key) for key, sub in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_spec(sub, f"{name}_{i}") for i, sub in enumerate(space.spaces))
    if isinstance(space, spaces.Box):
        return specs.BoundedArray(space.shape, space.dtype, space.low, space.high, name)
    if isinstance(space, spaces.Discrete):
        if space.start == 0:
            return specs.DiscreteArray(int(space.n), np.int64, name)
        return specs.BoundedArray((), np.int64, space.start, space.start + space.n - 1, name)
    if isinstance(space, spaces.MultiDiscrete):
        return specs.BoundedArray(space.shape, space.dtype, space.start, space.start + space.nvec - 1, name)
    if isinstance(space, spaces.MultiBinary):
        return specs.BoundedArray(space.shape, space.dtype, 0, 1, name)
    raise ValueError(f"{name}: dm_env has no spec of a {type(space).__name__}; the view obs='dict' has none of them")
