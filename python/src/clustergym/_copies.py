"""Copies of environments: of a remote one, which are independent, and of wrappers around it, which cannot be.

Python's :func:`copy.copy` of a wrapper shares what it wraps. Around a remote environment both would step the same episode
and close the same session, so it is refused here; other environments are copied as ever.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import gymnasium as gym

from .errors import RemoteError

__all__ = ["guard", "refuse", "twin_of"]


def twin_of(env: Any) -> Any:
    """A copy of a remote environment, or of several, in a session of its own and in the same state.

    A copy of one that has no episode under way, was interrupted or is closed needs a reset.
    """
    cls: Any = type(env)
    twin = cls.__new__(cls)
    twin.__setstate__(env.__getstate__())
    if env._closed if hasattr(env, "_closed") else env.closed:
        return twin
    try:
        blob = env.snapshot()
        twin.restore(blob)
    except RemoteError:
        return twin
    except BaseException:
        twin.close()
        raise
    twin._np_random, twin._np_random_seed = copy.deepcopy(env._np_random), env._np_random_seed
    return twin


def refuse(self: Any) -> Any:
    """The ``__copy__`` of what holds a remote environment."""
    raise TypeError(
        f"copy.copy of {type(self).__name__} shares the remote environment in it, which both would then step and close; "
        "copy.deepcopy gives a copy that goes on from the same state, and so do snapshot() and restore()"
    )


_ours: list[type] = []


def guard(environment: type) -> None:
    """Makes :func:`copy.copy` of Gymnasium's wrappers refuse those around environments of this class."""
    _ours.append(environment)
    for kind, inner in _HOLDERS:
        if kind is not None and "__copy__" not in kind.__dict__:
            kind.__copy__ = _copier(inner)  # type: ignore[attr-defined]


# Classes whose objects have environments in them, and what finds one. Gymnasium 0.29, which CleanRL pins, lacks one.
_HOLDERS: tuple[tuple[type | None, Callable[[Any], Any]], ...] = (
    (gym.Wrapper, lambda wrapper: wrapper.unwrapped),
    (getattr(gym.vector, "VectorWrapper", None), lambda wrapper: wrapper.unwrapped),
    (getattr(gym.vector, "SyncVectorEnv", None), lambda envs: envs.envs[0].unwrapped),
)


def _copier(inner: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def __copy__(self: Any) -> Any:
        try:
            remote = isinstance(inner(self), tuple(_ours))
        except Exception:  # a wrapper that is not finished
            remote = False
        if remote:
            refuse(self)
        # What copy.copy does with an object that has no __copy__.
        make, args, *rest = self.__reduce_ex__(4)
        other = make(*args)
        state = rest[0] if rest else None
        if state is not None:
            if hasattr(other, "__setstate__"):
                other.__setstate__(state)
            else:
                state, slots = state if isinstance(state, tuple) else (state, None)
                other.__dict__.update(state or {})
                for name, value in (slots or {}).items():
                    setattr(other, name, value)
        return other

    return __copy__
