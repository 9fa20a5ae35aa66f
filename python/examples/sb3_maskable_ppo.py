"""MaskablePPO of sb3-contrib: illegal actions are never taken, while acting and while learning.

    python sb3_maskable_ppo.py --env JobSelect-v1 --steps 50000 --envs 16 --save jobselect.zip

It starts a server of its own; --url names one that runs already. Ctrl-C saves the model so far, and --resume goes on
with it. The masks come with every step, so that asking for
them costs no round trip. Ends with a comparison to random legal actions on the same episodes.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
import paired
import sb3_run
from sb3_contrib import MaskablePPO

from clustergym.sb3 import RemoteSB3VecEnv


def main(argv: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    paired.add_arguments(parser, steps=50_000, envs=16)
    parser.add_argument("--gamma", type=float, default=0.999)
    parser.add_argument("--rollout", type=int, default=128, help="steps of each environment between updates")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = paired.parse(parser, argv)

    options = paired.options(args)
    env = RemoteSB3VecEnv(args.env, args.envs, **options)
    try:
        model = sb3_run.train(
            MaskablePPO, env, args, n_steps=args.rollout, batch_size=args.batch, n_epochs=args.epochs, gamma=args.gamma,
            learning_rate=args.lr,
        )  # fmt: skip
    finally:
        env.close()

    def act(obs: np.ndarray, masks: np.ndarray) -> np.ndarray:
        return model.predict(obs, deterministic=True, action_masks=masks)[0]

    return paired.compare(act, args, options)


if __name__ == "__main__":
    print(json.dumps(main()))
