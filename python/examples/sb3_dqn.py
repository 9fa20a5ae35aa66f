"""DQN of Stable-Baselines3 on a vector of remote environments.

    python sb3_dqn.py --env CartPole-v1 --steps 50000 --envs 4

It starts a server of its own; --url names one that runs already. Ctrl-C saves the model so far, and --resume goes on
with it, with an empty buffer. This DQN knows no masks: an illegal action becomes
the environment's no-op and, with --penalty, costs a little, so that it is unlearned. Ends with a comparison to random
legal actions on the same episodes.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
import paired
import sb3_run
from stable_baselines3 import DQN

from clustergym.sb3 import RemoteSB3VecEnv


def main(argv: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    paired.add_arguments(parser, steps=50_000, envs=4, env="CartPole-v1")
    parser.add_argument("--gamma", type=float, default=0.99)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--penalty", action="store_true", help="illegal actions cost 0.1 while learning")
    args = paired.parse(parser, argv)

    options = paired.options(args)
    training = options | ({"invalid": "penalty"} if args.penalty else {})
    env = RemoteSB3VecEnv(args.env, args.envs, **training)
    try:
        model = sb3_run.train(
            DQN, env, args, learning_rate=args.lr, buffer_size=50_000, learning_starts=1_000, batch_size=64,
            gamma=args.gamma, train_freq=64, gradient_steps=64, target_update_interval=250,
            exploration_fraction=0.3, exploration_final_eps=0.04,
        )  # fmt: skip
    finally:
        env.close()

    def act(obs: np.ndarray, _: np.ndarray) -> np.ndarray:
        return model.predict(obs, deterministic=True)[0]

    return paired.compare(act, args, options)


if __name__ == "__main__":
    print(json.dumps(main()))
