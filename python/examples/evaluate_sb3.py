"""A model of Stable-Baselines3 in the comparison of gymctl eval, on the same windows as heuristics and checkpoints.

    gymctl eval -c quickstart --policies sjf+skip,random@slots --serve 127.0.0.1:8765 --external sb3
    python evaluate_sb3.py --model jobselect.zip --url ws://127.0.0.1:8765 --name sb3

The environment of the evaluation must be the one that the model was trained on: the same slots, cluster and jobs per
gang, here with sb3_maskable_ppo.py --kwargs '{"preset": "quickstart-v1"}' --save jobselect.zip. The first command prints the
table once the second one has played its windows.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from sb3_contrib import MaskablePPO
from stable_baselines3 import DQN, PPO

from clustergym import evaluate

ALGORITHMS = {"maskable_ppo": MaskablePPO, "ppo": PPO, "dqn": DQN}


def main(argv: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="what sb3_maskable_ppo.py --save has written")
    parser.add_argument("--algorithm", choices=sorted(ALGORITHMS), default="maskable_ppo")
    parser.add_argument(
        "--vec-normalize", type=Path, help="what VecNormalize.save has written, if it learned behind one"
    )
    parser.add_argument("--url", required=True, help="the address that gymctl eval --serve printed")
    parser.add_argument("--token", help="default: $CLUSTERGYM_TOKEN")
    parser.add_argument("--name", required=True, help="what gymctl eval --external calls this policy")
    args = parser.parse_args(argv)

    model = ALGORITHMS[args.algorithm].load(args.model, device="cpu")
    episodes = evaluate(model, args.url, args.name, token=args.token, transform=args.vec_normalize)
    mean = float(np.mean([e["r"] for e in episodes]))
    print(f"{args.name}: {len(episodes)} windows, mean return {mean:.4f}")
    return {"windows": len(episodes), "mean_return": mean}


if __name__ == "__main__":
    print(json.dumps(main()))
