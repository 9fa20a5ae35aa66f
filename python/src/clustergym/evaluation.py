"""Adds your own policy to the comparison of ``gymctl eval``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy.typing as npt

from .envs import RemoteEnv
from .errors import DrainWarning, ProtocolError

__all__ = ["evaluate"]


def evaluate(
    act: Callable[[Any, npt.NDArray[Any]], Any],
    url: str,
    name: str,
    *,
    token: str | None = None,
    timeout: float = 60.0,
    obs: str | None = None,
    mask: Sequence[str] = ("info",),
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
        mask: where masks are besides the second argument of act: ``"obs"`` puts them into the observation too.
        reset: called before each window, for policies with a memory.

    Returns:
        For each window the return ``r`` and the length ``l`` of its episode, without windows in which there is nothing to
        decide, and without those that were left when ``gymctl eval`` ended. The metrics of the comparison are those that
        ``gymctl eval`` prints.
    """
    env = RemoteEnv("eval", url, token, timeout=timeout, obs=obs, mask=mask, kwargs={"policy": name})
    try:
        windows = env.handle.meta.get("windows")
        if isinstance(windows, (list, tuple)):
            windows = len(windows)
        if not isinstance(windows, int):
            raise ProtocolError(f"evaluate: the server says {windows!r} windows: is it gymctl eval --serve?")
        results: list[dict[str, float]] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DrainWarning)  # it ends as soon as it has all windows
            while len(results) < windows and not env.client.draining:
                if reset is not None:
                    reset()
                seen, _ = env.reset()
                total, steps, over = 0.0, 0, False
                while not over and not env.client.draining:
                    seen, reward, terminated, truncated, _ = env.step(act(seen, env.action_masks()))
                    total, steps, over = total + reward, steps + 1, terminated or truncated
                if over:
                    results.append({"r": total, "l": float(steps)})
        return results
    finally:
        env.close()
