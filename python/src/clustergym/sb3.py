"""Environments of a server as one vector environment of Stable-Baselines3.

All environments step in one round trip. Action masks come with every step, so that ``MaskablePPO`` of sb3-contrib
finds them without another one::

    from sb3_contrib import MaskablePPO
    from clustergym.sb3 import MetricsCallback, RemoteSB3VecEnv

    env = RemoteSB3VecEnv("JobSelect-v2", num_envs=16)
    MaskablePPO("MlpPolicy", env, gamma=0.999).learn(200_000, callback=MetricsCallback())

Environments by their id, ``PPO("MlpPolicy", "clustergym/JobSelect-v2")``, and ``make_vec_env`` need nothing of this module;
:class:`MetricsCallback` works with them too.
"""

from __future__ import annotations

import math
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

try:
    from gymnasium import spaces
    from gymnasium.vector import AutoresetMode
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as e:
    raise ImportError("clustergym.sb3 needs Stable-Baselines3: pip install 'clustergym[sb3]'") from e

from ._copies import refuse
from .envs import frames
from .vector import RemoteVectorEnv

__all__ = ["MetricsCallback", "RemoteSB3VecEnv"]

# Keys of the vector's infos that single infos do not have: SB3 gets masks through env_method.
_APART = frozenset({"action_mask", "final_obs", "final_info"})
_MASK_ONLY = frozenset({"action_mask", "_action_mask"})

Indices = int | Iterable[int] | None


class RemoteSB3VecEnv(VecEnv):
    """n environments with the interface of Stable-Baselines3.

    An environment that ends an episode begins the next one within the same step. The info of that step holds the true
    last observation as ``terminal_observation``; ``TimeLimit.truncated`` says whether to bootstrap from its value;
    ``episode`` (``r``, ``l``) comes from the server, so that no monitor is needed, and so do the environment's metrics, as
    ``jct_s``. Rewards are float32.

    Args:
        env: an environment's id, as ``"JobSelect-v2"``, or a :class:`~clustergym.RemoteVectorEnv` in
            ``AutoresetMode.SAME_STEP``, which this object then owns. Open it with ``info=["episode", "metrics"]``.
        num_envs: how many, if an id is given.
        **options: arguments of :class:`~clustergym.RemoteVectorEnv`, if an id is given: ``url``, ``obs="dict"``, ….

    Raises:
        ValueError: the vector environment is in another mode, or comes with arguments of its own.
        ClusterGymError: a subclass names the cause, here and from every method.
    """

    __copy__ = refuse

    def __init__(self, env: str | RemoteVectorEnv, num_envs: int = 1, **options: Any) -> None:
        if isinstance(env, str):
            options.setdefault("info", ["episode", "metrics"])
            env = RemoteVectorEnv(env, num_envs, autoreset_mode=AutoresetMode.SAME_STEP, **options)
        elif options or num_envs not in (1, env.num_envs):
            raise ValueError("num_envs and options belong to an environment's id: the vector environment has its own")
        mode = env.metadata["autoreset_mode"]
        if mode is not AutoresetMode.SAME_STEP:
            raise ValueError(f"autoreset_mode of the vector environment is {mode}, want {AutoresetMode.SAME_STEP}")
        if env.info == "metrics" or (isinstance(env.info, list) and "episode" not in env.info):
            text = f'the vector environment has info={env.info!r}, without "episode": SB3 will show no ep_rew_mean'
            warnings.warn(text, stacklevel=2)
        self._venv = env  # before the base class asks for render_mode
        # Infos of SB3 are a dict for each environment, in which a key like "episode" marks an episode's end.
        env._blank = {}
        self._attrs: list[dict[str, Any]] = [{} for _ in range(env.num_envs)]
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)
        self.metadata.update(render_fps=env.metadata["render_fps"])  # for VecVideoRecorder

    @property
    def vector_env(self) -> RemoteVectorEnv:
        """The vector environment behind this one."""
        return self._venv

    def reset(self) -> Any:
        """Begins an episode in all environments, with the seeds of :meth:`seed` and the options of :meth:`set_options`."""
        seeds = None if all(s is None for s in self._seeds) else list(self._seeds)
        options = self._options[0]
        if any(o != options for o in self._options):
            raise ValueError("set_options: the environments are reset together, give all of them the same options")
        obs, infos = self._venv.reset(seed=seeds, options=dict(options) or None)
        self.reset_infos = self._rows(infos)
        self._reset_seeds()
        self._reset_options()
        return obs

    def step_async(self, actions: npt.NDArray[Any]) -> None:
        """Sends the actions and returns at once; :meth:`step_wait` has the result."""
        self._venv.step_async(actions)

    def step_wait(self) -> tuple[Any, npt.NDArray[np.float32], npt.NDArray[np.bool_], list[dict[str, Any]]]:
        """Waits for the step; returns observations, rewards, dones and infos."""
        obs, rewards, terminated, truncated, infos = self._venv.step_wait()
        rows = self._rows(infos)
        dones = terminated | truncated
        for i in np.flatnonzero(dones).tolist():
            # Infos outside of "final" belong to the episode that has just begun.
            self.reset_infos[i] = rows[i]
            rows[i] = _row(infos["final_info"], i)
            rows[i]["terminal_observation"] = infos["final_obs"][i]
        for row, cut in zip(rows, (truncated & ~terminated).tolist()):
            row["TimeLimit.truncated"] = cut
        return obs, rewards.astype(np.float32), dones, rows

    def _rows(self, infos: Mapping[str, Any]) -> list[dict[str, Any]]:
        if infos.keys() <= _MASK_ONLY:  # true for almost every step
            return [{} for _ in range(self.num_envs)]
        return [_row(infos, i) for i in range(self.num_envs)]

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Which actions are legal now, bool [num_envs, actions]. They came with the last step, without a round trip."""
        return self._venv.action_masks()

    def _mask_of(self, i: int) -> npt.NDArray[np.bool_]:
        mask: npt.NDArray[np.bool_] = self.action_masks()[i]
        return mask

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """An attribute of each environment: the value from :meth:`set_attr`, else the one that all of them share."""
        return [self._attr(attr_name, i) for i in self._get_indices(indices)]

    def _attr(self, name: str, i: int) -> Any:
        if name in self._attrs[i]:
            return self._attrs[i][name]
        if name == "action_masks" and isinstance(self.action_space, (spaces.Discrete, spaces.MultiDiscrete)):
            return partial(self._mask_of, i)
        shared = _SHARED.get(name)
        if shared is None:
            raise AttributeError(f"a remote environment has no attribute {name!r}")
        return shared(self._venv)

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Keeps a value for :meth:`get_attr`. The server is not told."""
        for i in self._get_indices(indices):
            self._attrs[i][attr_name] = value

    def env_method(
        self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Calls a method of each environment: ``action_masks``, ``render``, or one that the server answers
        (``set_task``, ``get_task``, ``sample_tasks``, ``metrics``, ``heuristic``), with its arguments by name."""
        at = list(self._get_indices(indices))
        if method_name == "action_masks":
            masks = self.action_masks()
            return [masks[i] for i in at]
        if method_name == "render":
            mode = self._venv.render_mode
            return [None] * len(at) if mode is None else frames(self._venv.handle, at, mode)
        if method_args:
            raise TypeError(f"{method_name} takes its arguments by name")
        return list(self._venv.remote_call(method_name, method_kwargs, at))

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Indices = None) -> list[bool]:
        """False for each environment: wrappers would have to be in the server."""
        return [False for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[Any]:
        """The picture of each environment, uint8 [height, width, 3], if render_mode is ``"rgb_array"``."""
        return self.env_method("render")

    def close(self) -> None:
        """Closes the environments. Harmless if called twice."""
        self._venv.close()


_SHARED: dict[str, Callable[[RemoteVectorEnv], Any]] = {
    "render_mode": lambda venv: venv.render_mode,
    "spec": lambda venv: venv.spec,
    "metric_names": lambda venv: venv.metric_names,
    "metadata": lambda venv: venv.metadata,
    "observation_space": lambda venv: venv.single_observation_space,
    "action_space": lambda venv: venv.single_action_space,
}


def _row(infos: Mapping[str, Any], i: int) -> dict[str, Any]:
    """Environment i's part of a vector info, with Python's own numbers."""
    row: dict[str, Any] = {}
    for key, values in infos.items():
        there = infos.get("_" + key)
        if there is None or key in _APART or not there[i]:
            continue  # the name is a "_key" itself
        if isinstance(values, Mapping):
            row[key] = _row(values, i)
        else:
            value = values[i]
            row[key] = value.item() if isinstance(value, np.generic) else value
    return row


class MetricsCallback(BaseCallback):
    """Records the metrics of episodes in SB3's logger: ``rollout/jct_s`` is the mean ``jct_s`` of the last hundred episodes.

    ::

        model.learn(200_000, callback=MetricsCallback())

    It needs environments of this package: a :class:`RemoteSB3VecEnv`, or SB3's own vector environments of Gymnasium's
    (``make_vec_env("clustergym/JobSelect-v2", 8)``), wrapped or not. An episode without a value of a metric does not count
    for that metric.

    Args:
        stats_window_size: how many episodes the mean is over, as SB3's models have it for ``ep_rew_mean``.
        verbose: as of all callbacks.

    Attributes:
        means: the current means by metric; empty before the first episode has ended.
    """

    def __init__(self, stats_window_size: int = 100, verbose: int = 0) -> None:
        super().__init__(verbose)
        if stats_window_size < 1:
            raise ValueError(f"stats_window_size is {stats_window_size}, want 1 or more episodes")
        self.stats_window_size = stats_window_size
        self.means: dict[str, float] = {}
        self._last: dict[str, deque[float]] = {}

    def _init_callback(self) -> None:
        env = self.training_env
        try:
            named = env.get_attr("metric_names")
        except AttributeError as e:
            raise ValueError(
                f"MetricsCallback needs environments of clustergym; {type(env).__name__} has others"
            ) from e
        names = dict.fromkeys(name for names in named for name in names)
        self._last = {name: self._last.get(name) or deque(maxlen=self.stats_window_size) for name in names}

    def _on_step(self) -> bool:
        dones = self.locals["dones"]
        if dones.any():
            infos = self.locals["infos"]
            for i in np.flatnonzero(dones).tolist():
                for name, last in self._last.items():
                    value = infos[i].get(name, math.nan)  # NaN is a metric without a value in this episode
                    if not math.isnan(value):
                        last.append(float(value))
            self.means = {name: float(np.mean(last)) for name, last in self._last.items() if last}
            self._record()  # an off-policy algorithm may write its log in this step
        return True

    def _on_rollout_end(self) -> None:
        self._record()  # also after a rollout in which no episode ended, as SB3 does with ep_rew_mean

    def _record(self) -> None:
        for name, mean in self.means.items():
            self.logger.record(f"rollout/{name}", mean)
