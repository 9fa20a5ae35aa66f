"""The rules by which gymctl chooses an action by what a policy weighs, for policies in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["RULES", "decide"]

RULES = ("share", "argmax", "sample")


def decide(logits: Any, mask: Any = None, rule: str = "share", *, noop: int | None = None, rng: Any = None) -> Any:
    """The action that ``gymctl eval`` would choose of a policy with these logits: the rules of ``eval.greedy``.

    A model whose ``predict(deterministic=True)`` takes the largest logit waits whenever waiting is likelier than each single
    start, even if starting one of them is far likelier than waiting. ``gymctl`` plays its own agents and ONNX models by
    ``"share"``, so a comparison in which one policy is played by another rule compares rules too.

    ::

        def act(obs, mask):
            seen, _ = model.policy.obs_to_tensor(obs)
            logits = model.policy.get_distribution(seen).distribution.logits
            return clustergym.decide(logits[0], mask, noop=env.handle.meta["noop"])

    Args:
        logits: the logarithms of the actions' probabilities but for a constant, [actions] or [batch, actions]: an array or
            a tensor. Of probabilities p give ``np.log(p)``. Action values have no shares: use ``"argmax"``.
        mask: which actions are legal, in the same shape; None = all.
        rule: ``"share"`` does nothing only if that is likelier than all other legal actions together, and else takes the
            likeliest of these; ``"argmax"`` takes the likeliest of all; ``"sample"`` draws. The first among equals is taken.
        noop: the action that does nothing, as ``handle.meta["noop"]`` of an environment says. None or -1 = there is none,
            and then share is argmax.
        rng: of sample: a ``numpy.random.Generator``, None = a new one.

    Returns:
        An int, or an int64 array [batch].

    Raises:
        ValueError: shapes that do not fit, an unknown rule, no legal action, or logits that are no numbers.
    """
    if rule not in RULES:
        raise ValueError(f"rule is {rule!r}, want one of {', '.join(RULES)}")
    x = _array(logits).astype(np.float64)
    if x.ndim not in (1, 2) or not x.size:
        raise ValueError(f"logits have shape {x.shape}, want [actions] or [batch, actions]")
    legal = np.ones(x.shape, np.bool_) if mask is None else _array(mask) != 0
    if legal.shape != x.shape:
        raise ValueError(f"mask has shape {legal.shape}, want {x.shape} as the logits")
    if noop is not None and noop >= x.shape[-1]:
        raise ValueError(f"noop is {noop}, want one of {x.shape[-1]} actions, or -1")
    rows, legal = np.atleast_2d(x), np.atleast_2d(legal)
    if not legal.any(axis=1).all():
        raise ValueError("there is no legal action")
    if np.isnan(rows[legal]).any():
        raise ValueError("a logit is NaN")
    with np.errstate(invalid="ignore", over="ignore"):
        if rule == "sample":
            chosen = _draw(rows, legal, np.random.default_rng() if rng is None else rng)
        elif rule == "share" and noop is not None and noop >= 0:
            chosen = _share(rows, legal, noop)
        else:
            chosen = _largest(rows, legal)
    return chosen if x.ndim == 2 else int(chosen[0])


def _array(x: Any) -> npt.NDArray[Any]:
    if hasattr(x, "detach"):  # a tensor of PyTorch
        x = x.detach().cpu().numpy()
    return np.asarray(x)


def _largest(x: npt.NDArray[np.float64], legal: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """The legal action of the largest number in each row, the first among equals."""
    masked = np.where(legal, x, -np.inf)
    at = masked.argmax(axis=1)
    first = np.isneginf(masked.max(axis=1))  # the model has masked all legal actions
    chosen: npt.NDArray[np.int64] = np.where(first, legal.argmax(axis=1), at)
    return chosen


def _share(x: npt.NDArray[np.float64], legal: npt.NDArray[np.bool_], noop: int) -> npt.NDArray[np.int64]:
    others = legal.copy()
    others[:, noop] = False
    weights = np.where(others, np.exp(x - x[:, noop : noop + 1]), 0.0)
    total = np.cumsum(weights, axis=1)[:, -1]  # in order, as gymctl adds
    waits = legal[:, noop] & (~others.any(axis=1) | (total < 1))
    chosen: npt.NDArray[np.int64] = np.where(waits, noop, _largest(x, others))
    return chosen


def _draw(x: npt.NDArray[np.float64], legal: npt.NDArray[np.bool_], rng: Any) -> npt.NDArray[np.int64]:
    top = np.take_along_axis(x, _largest(x, legal)[:, None], axis=1)
    weights = np.where(legal, np.exp(x - top), 0.0)
    total = np.cumsum(weights, axis=1)
    if not (np.isfinite(total[:, -1]) & (total[:, -1] > 0)).all():
        raise ValueError("a logit is infinite")
    u = np.asarray(rng.random(len(x))) * total[:, -1]
    taken = (weights > 0) & (u[:, None] < total)
    last = x.shape[1] - 1 - (weights > 0)[:, ::-1].argmax(axis=1)  # where rounding pushed u to the total
    chosen: npt.NDArray[np.int64] = np.where(taken.any(axis=1), taken.argmax(axis=1), last)
    return chosen
