"""PPO of Stable-Baselines3 on a vector of remote environments.

    python sb3_ppo.py --env CartPole-v1 --steps 50000 --envs 8 --save cartpole.zip

It starts a server of its own; --url names one that runs already. This PPO knows no masks: an illegal action becomes
the environment's no-op (see sb3_maskable_ppo.py for one that never takes one). Ends with a comparison to random legal
actions on the same episodes.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
from stable_baselines3 import PPO

import paired
from clustergym.sb3 import RemoteSB3VecEnv


def main(argv: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    paired.add_arguments(parser, steps=50_000, envs=8, env="CartPole-v1")
    parser.add_argument("--gamma", type=float, default=0.98)
    parser.add_argument("--save", help="file for the trained model")
    args = parser.parse_args(argv)

    options = paired.options(args) | {"obs": "flat"}
    env = RemoteSB3VecEnv(args.env, args.envs, **options)
    try:
        model = PPO(
            "MlpPolicy", env, n_steps=64, batch_size=256, n_epochs=10, gamma=args.gamma, gae_lambda=0.9,
            learning_rate=1e-3, seed=args.seed, device="cpu",
        )  # fmt: skip
        model.learn(args.steps)
    finally:
        env.close()
    if args.save:
        model.save(args.save)

    def act(obs: np.ndarray, _: np.ndarray) -> np.ndarray:
        return model.predict(obs, deterministic=True)[0]

    return paired.compare(act, args, options)


if __name__ == "__main__":
    print(json.dumps(main()))
