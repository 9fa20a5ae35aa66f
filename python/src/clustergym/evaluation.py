"""Adds your own policy to the comparison of ``gymctl eval``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy.typing as npt

from .envs import RemoteEnv
from .errors import ProtocolError

__all__ = ["evaluate"]


def evaluate(
    act: Callable[[Any, npt.NDArray[Any]], Any],
    url: str,
    name: str,
    *,
    token: str | None = None,
    timeout: float = 60.0,
    obs: str | None = None,
    reset: Callable[[], None] | None = None,
) -> list[dict[str, float]]:
    """Plays the windows of a running ``gymctl eval --serve ADDR --external NAME``, which then counts this policy too.

    Args:
        act: gives the action for an observation and the mask of legal actions (bool [actions]).
        url: the address that ``gymctl eval`` printed.
        name: the NAME it was given.
        token: bearer token, None = ``$CLUSTERGYM_TOKEN``.
        timeout: seconds that any wait may last.
        obs: the view of observations, as for :class:`~clustergym.RemoteEnv`.
        reset: called before each window, for policies with a memory.

    Returns:
        For each window the return ``r`` and the length ``l`` of its episode. The metrics of the comparison are those that
        ``gymctl eval`` prints.
    """
    env = RemoteEnv("eval", url, token, timeout=timeout, obs=obs, kwargs={"policy": name})
    try:
        windows = env.handle.meta.get("windows")
        if isinstance(windows, (list, tuple)):
            windows = len(windows)
        if not isinstance(windows, int):
            raise ProtocolError(f"evaluate: the server says {windows!r} windows: is it gymctl eval --serve?")
        results = []
        for _ in range(windows):
            if reset is not None:
                reset()
            seen, _ = env.reset()
            total, steps, over = 0.0, 0, False
            while not over:
                seen, reward, terminated, truncated, _ = env.step(act(seen, env.action_masks()))
                total, steps, over = total + reward, steps + 1, terminated or truncated
            results.append({"r": total, "l": float(steps)})
        return results
    finally:
        env.close()
