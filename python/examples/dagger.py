"""DAgger (Ross, Gordon and Bagnell, AISTATS 2011) with NumPy: a linear policy learns what a search would do.

    python dagger.py --teacher rollout:sjf@slots --budget 64

The policy plays, ``rollout:sjf@slots`` says at each state what it would do, and the policy is fitted to all that was said.
"""

from __future__ import annotations

import argparse

import numpy as np

import clustergym


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--teacher", default="rollout:sjf@slots")
    parser.add_argument("--budget", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--steps", type=int, default=100, help="of each environment in a round")
    parser.add_argument("--envs", type=int, default=8)
    args = parser.parse_args()
    kwargs = {"cluster": "4x4", "window": 32, "warm": 16, "load": 1.1, "trace": {"synth": {"jobs": 2000}}}
    venv = clustergym.RemoteVectorEnv("JobSelect-v1", args.envs, kwargs=kwargs)
    try:
        obs, _ = venv.reset(seed=1)
        size, actions = obs.shape[1] + 1, int(venv.single_action_space.n)  # type: ignore[attr-defined]
        weights = np.zeros((size, actions), np.float64)
        seen, said, legal = [], [], []
        for turn in range(args.rounds):
            right = total = 0
            for _ in range(args.steps):
                x = np.hstack([obs, np.ones((args.envs, 1))])
                mask = venv.action_masks()
                label = venv.advise(args.teacher, budget=args.budget)
                own = np.where(mask, x @ weights, -np.inf).argmax(1)
                choice = mask.sum(1) > 1  # else there is nothing to learn
                choice &= mask[np.arange(args.envs), label]
                right, total = right + int((own == label)[choice].sum()), total + int(choice.sum())
                seen.append(x[choice])
                said.append(label[choice])
                legal.append(mask[choice])
                obs, *_ = venv.step(label if turn == 0 else own)  # the first round is the teacher's play
            print(f"round {turn}: agrees with {args.teacher} in {right} of {total} decisions")
            weights = fit(np.vstack(seen), np.concatenate(said), np.vstack(legal))
    finally:
        venv.close()


def fit(x: np.ndarray, label: np.ndarray, legal: np.ndarray, passes: int = 200) -> np.ndarray:
    """Multinomial logistic regression over the legal actions, by gradient descent."""
    weights = np.zeros((x.shape[1], legal.shape[1]), np.float64)
    target = np.eye(legal.shape[1])[label]
    rate = 1 / max(1.0, float((x * x).sum(1).mean()))
    for _ in range(passes):
        score = np.where(legal, x @ weights, -np.inf)
        p = np.exp(score - score.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        weights += rate * x.T @ (target - p) / len(x)
    return weights


if __name__ == "__main__":
    main()
