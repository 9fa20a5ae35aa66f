"""Adds your own policy to the comparison of ``gymctl eval``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ._playing import Player
from .envs import RemoteEnv
from .errors import DrainWarning, ProtocolError

__all__ = ["evaluate", "play"]


def evaluate(
    act: Any,
    url: str,
    name: str,
    *,
    token: str | None = None,
    timeout: float = 60.0,
    obs: str | None = None,
    mask: Sequence[str] = ("info",),
    reset: Callable[[], None] | None = None,
    transform: Any = None,
) -> list[dict[str, float]]:
    """Plays the streams or windows of a running ``gymctl eval --serve ADDR --external NAME``, which then counts this policy
    too. An episode on a stream may have thousands of decisions.

    Args:
        act: gives the action for an observation and the mask of legal actions (bool [actions]): a function, or a model, as
            :func:`clustergym.compare` takes them.
        url: the address that ``gymctl eval`` printed.
        name: the NAME it was given.
        token: bearer token, None = ``$CLUSTERGYM_TOKEN``.
        timeout: seconds that any wait may last.
        obs: the view of observations, as for :class:`~clustergym.RemoteEnv`.
        mask: where masks are besides the second argument of act: ``"obs"`` puts them into the observation too.
        reset: called before each stream or window, for policies with a memory.
        transform: of a model, as for :func:`clustergym.compare`.

    Returns:
        For each stream or window the return ``r`` and the length ``l`` of its episode, without windows in which there is
        nothing to decide, and without those that were left when ``gymctl eval`` ended. The metrics of the comparison are
        those that ``gymctl eval`` prints.
    """
    player = Player(act, transform)
    return play(player, url, name, token=token, timeout=timeout, obs=obs, mask=mask, reset=reset)


def play(
    player: Player,
    url: str,
    name: str,
    *,
    token: str | None,
    timeout: float,
    obs: str | None,
    mask: Sequence[str],
    reset: Callable[[], None] | None,
) -> list[dict[str, float]]:
    """:func:`evaluate` by a player."""
    remote = RemoteEnv("eval", url, token, timeout=timeout, obs=obs, mask=mask, kwargs={"policy": name})
    try:
        windows = remote.handle.meta.get("windows")
        if isinstance(windows, (list, tuple)):
            windows = len(windows)
        if not isinstance(windows, int):
            raise ProtocolError(f"evaluate: the server says {windows!r} windows: is it gymctl eval --serve?")
        env = player.around(remote)
        masks = env.get_wrapper_attr("action_masks")
        results: list[dict[str, float]] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DrainWarning)  # it ends as soon as it has all windows
            while len(results) < windows and not remote.client.draining:
                if reset is not None:
                    reset()
                player.begin()
                seen, _ = env.reset()
                total, steps, over = 0.0, 0, False
                while not over and not remote.client.draining:
                    seen, reward, terminated, truncated, _ = env.step(player.act(seen, masks()))
                    total, steps, over = total + float(reward), steps + 1, terminated or truncated
                if over:
                    results.append({"r": total, "l": float(steps)})
        return results
    finally:
        remote.close()
