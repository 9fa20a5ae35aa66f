"""Models as players: they see observations as they did while they learned, and act through the same wrappers.

A model of Stable-Baselines3 that learned behind ``VecNormalize``, frames in a stack or wrappers of Gymnasium takes other
observations than the environment gives, and other actions than it takes may leave it. What stood between is copied from the
model's own environment and put around the one that it plays in, so that statistics and frames of the training stay as they are.
"""

from __future__ import annotations

import copy
import inspect
import os
import pickle
import types
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from .errors import ClusterGymError

__all__ = ["LOST", "Player", "aside", "between", "forgotten", "transform_of"]

# Wrappers that change neither observations nor actions, or that only the training needs: by their names, because Gymnasium
# has two of some of them, and Stable-Baselines3 need not be installed.
_ASIDE = frozenset({
    "Autoreset", "ClipReward", "HumanRendering", "Monitor", "NormalizeReward", "OrderEnforcing", "PassiveEnvChecker",
    "RecordEpisodeStatistics", "RecordVideo", "RenderCollection", "RewardWrapper", "TimeLimit", "TransformReward",
    "VecCheckNan", "VecMonitor", "VecVideoRecorder",
})  # fmt: skip


def aside(wrapper: Any) -> bool:
    """Whether a wrapper matters to rewards, records and limits alone."""
    return any(kind.__name__ in _ASIDE for kind in type(wrapper).__mro__)


def between(model: Any) -> tuple[list[Any], list[Any]]:
    """What stood between a model of Stable-Baselines3 and its environment, the innermost first: the wrappers of vector
    environments that change observations or actions, and all of single ones."""
    venv = _env_of(model)
    outer: list[Any] = []
    while venv is not None and hasattr(venv, "venv"):
        outer.append(venv)
        venv = venv.venv
    inner: list[Any] = []
    envs = getattr(venv, "envs", None)
    env = envs[0] if isinstance(envs, (list, tuple)) and envs else None
    while isinstance(env, gym.Wrapper):
        inner.append(env)
        env = env.env
    if envs is None and venv is not None:
        _refuse_elsewhere(venv)
    return [w for w in reversed(outer) if not aside(w)], inner[::-1]


def _env_of(model: Any) -> Any:
    get = getattr(model, "get_env", None)
    return get() if callable(get) else None


def _refuse_elsewhere(venv: Any) -> None:
    """Refuses wrappers that are in other processes, where they cannot be copied from."""
    try:
        specs = venv.get_attr("spec", 0)
        wrappers = [w.name for w in specs[0].additional_wrappers]
    except Exception:  # closed, or without a spec
        return
    named = [name for name in wrappers if name not in _ASIDE]
    if named:
        raise ClusterGymError(
            f"the model learned behind {', '.join(named)} in processes of {type(venv).__name__}, where it cannot be copied from: "
            "give transform= what it does with observations, or a function of (obs, mask) in place of the model"
        )


def forgotten(model: Any) -> bool:
    """Whether a model learned behind ``VecNormalize`` and has lost it, because it was loaded without its environment."""
    if getattr(model, "_last_original_obs", None) is None:
        return False  # what VecNormalize was given, which Stable-Baselines3 keeps and saves
    normalizing = getattr(model, "get_vec_normalize_env", None)
    if callable(normalizing) and normalizing() is not None:
        return False
    # It may have normalised rewards alone. Then the last observations lie in the space, which normalised ones leave.
    return not _within(getattr(model, "_last_obs", None), getattr(model, "observation_space", None))


def _within(batch: Any, space: Any) -> bool:
    if isinstance(batch, Mapping) and isinstance(space, spaces.Dict):
        return all(key in batch and _within(batch[key], sub) for key, sub in space.spaces.items())
    if (
        batch is None
        or not isinstance(space, spaces.Box)
        or not (space.bounded_below.any() or space.bounded_above.any())
    ):
        return False
    return bool(np.all((batch >= space.low) & (batch <= space.high)))


LOST = (
    "the model learned behind VecNormalize, whose statistics it lost when it was loaded without its environment: load it with "
    "env=VecNormalize.load(FILE, venv), or give transform=FILE (False if it normalised rewards alone)"
)


def transform_of(given: Any) -> Callable[[Any], Any]:
    """What is done to observations: by a VecNormalize, the file of a saved one, or a function. False does nothing."""
    if given is False:
        return lambda seen: seen
    if isinstance(given, (str, os.PathLike)):
        with open(os.path.expanduser(given), "rb") as f:
            given = pickle.load(f)
    normalize = getattr(given, "normalize_obs", None)
    if callable(normalize):
        return lambda seen: _row(normalize(_batch(seen)))
    if callable(given):
        act: Callable[[Any], Any] = given
        return act
    raise TypeError(
        f"transform is a {type(given).__name__}, want a VecNormalize, its file, a function of observations or False"
    )


class Player:
    """Plays one environment with a model or a function.

    Args:
        model: one with the method ``predict`` of Stable-Baselines3, masked or not, or a function of (obs, mask).
        transform: of :func:`transform_of`, in place of what stood around the model's own environment; None finds that.

    Raises:
        TypeError: it is neither.
        ClusterGymError: what stood around the model's environment is lost, or cannot be copied.
    """

    def __init__(self, model: Any, transform: Any = None) -> None:
        predict = getattr(model, "predict", None)
        if predict is None and not callable(model):
            raise TypeError(
                f"model is a {type(model).__name__}, want one with a method predict, or a function of (obs, mask)"
            )
        self.space = getattr(model, "observation_space", None)
        self._transform = None if transform is None else transform_of(transform)
        self._free = callable(transform)  # a function may turn fields into a vector
        self._stages: list[_Stage] = []
        self._wrappers: list[Any] = []
        if predict is None:
            self._choose: Callable[[Any, Any], Any] = model
        elif "action_masks" in inspect.signature(predict).parameters:
            self._choose = lambda seen, mask: predict(seen, deterministic=True, action_masks=mask)[0]
        else:
            self._choose = lambda seen, _: predict(seen, deterministic=True)[0]
        if predict is not None and transform is None:
            if forgotten(model):
                raise ClusterGymError(LOST)
            outer, self._wrappers = between(model)
            self._stages = [_Stage(wrapper) for wrapper in outer]
        self._looked = False
        self._begins = True

    @property
    def given(self) -> Any:
        """The space of the environment that the model plays in, None if nothing tells it."""
        if self._wrappers:
            return self._wrappers[0].env.observation_space
        if self._stages:
            return self._stages[0].wrapper.venv.observation_space
        return None if self._free else self.space

    def around(self, env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
        """env with the wrappers of Gymnasium that were around the model's own."""
        if not self._wrappers:
            return env
        memo = {id(self._wrappers[0].env): env}  # what stands where in the copy
        for wrapper in self._wrappers:
            if not aside(wrapper):
                env = _copied(wrapper, "env", env, memo)
                if hasattr(env, "update_running_mean"):
                    env.update_running_mean = False
            memo[id(wrapper)] = env
        return env

    def begin(self) -> None:
        """Says that an episode begins."""
        self._begins = True

    def act(self, seen: Any, mask: Any) -> Any:
        """The action for an observation and the mask of legal actions."""
        if self._transform is not None:
            seen = self._transform(seen)
        for stage in self._stages:
            seen = stage.see(seen, self._begins)
        self._begins = False
        if not self._looked:
            self._look(seen)
        action = self._choose(seen, mask)
        for stage in reversed(self._stages):
            action = stage.do(action)
        return action

    def _look(self, seen: Any) -> None:
        """Refuses observations whose shape is not that of the model's training."""
        self._looked = True
        if not isinstance(self.space, spaces.Space):
            return
        want = _shapes(self.space)
        got = {k: np.shape(v) for k, v in (seen if isinstance(seen, Mapping) else {"": seen}).items()}
        if want is not None and want != got and ("" in want) == ("" in got):  # else obs= says that it takes both
            raise ClusterGymError(
                f"the model takes observations of {_words(want)}, those of the evaluation are {_words(got)}: env and "
                "env_kwargs must be those that it was trained with"
            )


class _Stage:
    """One wrapper of a vector environment, copied, between the model and the one environment that it plays."""

    def __init__(self, wrapper: Any) -> None:
        self.wrapper = wrapper
        # What needs no copy, because it has no memory.
        self._see: Callable[[Any], Any] | None = None
        self._inner: _Inner | None = None
        for name in ("normalize_obs", "transpose_observations"):
            if hasattr(type(wrapper), name):
                self._see = getattr(wrapper, name)
        if self._see is None:
            self._inner = _Inner(wrapper.venv)
            self._copy = _copied(wrapper, "venv", self._inner, {id(wrapper.venv): self._inner})

    def see(self, seen: Any, begins: bool) -> Any:
        """The observation as the wrapper shows it."""
        if self._see is not None:
            return _row(self._see(_batch(seen)))
        assert self._inner is not None
        self._inner.seen = seen
        if begins:
            return _row(self._copy.reset())
        return _row(self._copy.step_wait()[0])

    def do(self, action: Any) -> Any:
        """The action as the wrapper hands it on."""
        if self._inner is None:
            return action
        self._copy.step_async(np.stack([np.asarray(action)] * self._inner.num_envs))
        return np.asarray(self._inner.actions)[0]


class _Inner:
    """A vector environment in which every environment is the one that is played."""

    def __init__(self, venv: Any) -> None:
        self._venv = venv
        self.num_envs: int = venv.num_envs
        self.observation_space, self.action_space = venv.observation_space, venv.action_space
        self.seen: Any = None
        self.actions: Any = None
        self.reset_infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]

    def _rows(self) -> Any:
        return _batch(self.seen, self.num_envs)

    def reset(self) -> Any:
        return self._rows()

    def step_async(self, actions: Any) -> None:
        self.actions = actions

    def step_wait(self) -> Any:
        n = self.num_envs
        return self._rows(), np.zeros(n, np.float32), np.zeros(n, np.bool_), [{} for _ in range(n)]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_venv":
            raise AttributeError(name)
        return getattr(self._venv, name)


# Of Stable-Baselines3: the members of a wrapper's class, which cannot be copied and need not be.
_SHARED = "class_attributes"


def _copied(wrapper: Any, where: str, inner: Any, memo: dict[int, Any]) -> Any:
    """A copy of a wrapper around inner, which it finds under the name where. memo has what takes the place of what."""
    state = {key: value for key, value in wrapper.__dict__.items() if key not in (where, _SHARED)}
    state = {key: _redirected(value, memo) for key, value in state.items()}
    try:
        state = copy.deepcopy(state, memo)
    except Exception as e:
        raise ClusterGymError(
            f"the model learned behind {type(wrapper).__name__}, which cannot be copied ({e}): give transform= what it does with "
            "observations, or a function of (obs, mask) in place of the model"
        ) from e
    cls: Any = type(wrapper)
    new = cls.__new__(cls)
    new.__dict__.update(state, **{where: inner})
    if _SHARED in wrapper.__dict__:
        new.__dict__[_SHARED] = wrapper.__dict__[_SHARED]
    return new


def _redirected(value: Any, memo: Mapping[int, Any]) -> Any:
    """A function that refers to what has been replaced, as a lambda over an environment, with the replacement in its place."""
    if not isinstance(value, types.FunctionType) or not value.__closure__:
        return value
    if not any(id(cell.cell_contents) in memo for cell in value.__closure__):
        return value
    cells = tuple(types.CellType(memo.get(id(cell.cell_contents), cell.cell_contents)) for cell in value.__closure__)
    new = types.FunctionType(value.__code__, value.__globals__, value.__name__, value.__defaults__, cells)
    new.__kwdefaults__ = value.__kwdefaults__
    return new


def _batch(seen: Any, n: int = 1) -> Any:
    if isinstance(seen, Mapping):
        return {key: _batch(value, n) for key, value in seen.items()}
    return np.repeat(np.asarray(seen)[None], n, axis=0)


def _row(batch: Any) -> Any:
    if isinstance(batch, Mapping):
        return {key: _row(value) for key, value in batch.items()}
    return np.array(batch[0])


def _shapes(space: spaces.Space[Any]) -> dict[str, Any] | None:
    if isinstance(space, spaces.Dict):
        return {key: sub.shape for key, sub in space.spaces.items()}
    return {"": space.shape} if isinstance(space, spaces.Box) else None


def _words(shapes: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {list(shape)}".strip() for key, shape in sorted(shapes.items()))
