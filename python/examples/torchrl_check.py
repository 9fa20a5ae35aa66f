"""A remote environment under TorchRL's own checker, then a rollout of random legal actions.

    python torchrl_check.py --env JobSelect-v1 --envs 8 --steps 1000

It starts a server of its own; --url names one that runs already.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import paired
import torch
from torchrl.envs import check_env_specs

from clustergym.torchrl import torchrl_env


def main(argv: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    paired.add_arguments(parser, steps=1000, envs=8)
    args = paired.parse(parser, argv)
    torch.manual_seed(args.seed)

    env = torchrl_env(args.env, args.envs, **paired.options(args))
    try:
        check_env_specs(env)
        steps = max(1, args.steps // args.envs)
        began = time.monotonic()
        rollout = env.rollout(steps, break_when_any_done=False)
        rate = rollout.numel() / (time.monotonic() - began)
    finally:
        env.close()
    legal = True
    if "action_mask" in rollout.keys():  # noqa: SIM118 - a TensorDict has no "in"
        legal = bool(rollout["action_mask"].gather(-1, rollout["action"].unsqueeze(-1)).all())
    episodes = int(rollout["next", "done"].sum())
    print(
        f"{args.env}: checked; {rollout.numel()} steps, {episodes} episodes ended, {rate:,.0f} steps/s, all legal: {legal}"
    )
    return {"env": args.env, "steps": rollout.numel(), "episodes": episodes, "legal": legal}


if __name__ == "__main__":
    print(json.dumps(main()))
