"""PPO of Stable-Baselines3 on a vector of remote environments.

    python sb3_ppo.py --env CartPole-v1 --steps 50000 --envs 8 --save cartpole.zip

It starts a server of its own; --url names one that runs already. Ctrl-C saves the model so far, and --resume goes on
with it. This PPO knows no masks: an illegal action becomes
the environment's no-op (see sb3_maskable_ppo.py for one that never takes one). Ends with a comparison to random legal
actions on the same episodes.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
import paired
import sb3_run
from stable_baselines3 import PPO

from clustergym.sb3 import RemoteSB3VecEnv


def main(argv: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    paired.add_arguments(parser, steps=50_000, envs=8, env="CartPole-v1")
    parser.add_argument("--gamma", type=float, default=0.98)
    args = paired.parse(parser, argv)

    options = paired.options(args)
    env = RemoteSB3VecEnv(args.env, args.envs, **options)
    try:
        model = sb3_run.train(
            PPO,
            env,
            args,
            n_steps=64,
            batch_size=256,
            n_epochs=10,
            gamma=args.gamma,
            gae_lambda=0.9,
            learning_rate=1e-3,
        )
    finally:
        env.close()

    def act(obs: np.ndarray, _: np.ndarray) -> np.ndarray:
        return model.predict(obs, deterministic=True)[0]

    return paired.compare(act, args, options)


if __name__ == "__main__":
    print(json.dumps(main()))
