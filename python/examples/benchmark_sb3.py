"""MaskablePPO of sb3-contrib learns tasks of ClusterGym-Bench by the protocol, and leaves ONNX models that gymctl plays.

    python benchmark_sb3.py 'queuerank-*' --out runs/sb3 --steps 200000
    gymctl benchmark run --policy-onnx runs/sb3 --name sb3 -o runs/sb3-played

--version v1 takes the tasks of version 1; gymctl benchmark run then needs it, too.

Five seeds of each task, one after the other, in OUT/TASK/seed-N.onnx. Models that are there are not trained again, so that
after Ctrl-C the same command goes on with the seed that was interrupted.

Settings are the same on all tasks, and those of MaskablePPO but for three: 16 environments give 128 steps each to the 2048 of
an update, which goes over them by 256, and returns are not discounted, since a task counts all jobs of a window alike.
VecNormalize scales rewards. The last model counts: no checkpoint is chosen.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.vec_env import VecNormalize

import clustergym.onnx
from clustergym import LocalServer, find_gymctl
from clustergym.sb3 import RemoteSB3VecEnv

ENVS, ROLLOUT, BATCH = 16, 128, 256
GAMMA = 1.0


def asked(*args: str) -> Any:
    """What gymctl benchmark says, as JSON."""
    done = subprocess.run([find_gymctl(), "benchmark", *args, "--json"], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr.strip())
    return json.loads(done.stdout)


def train(task: dict[str, Any], steps: int, seed: int, url: str, target: Path) -> None:
    """One model of a task, as show --json describes it."""
    inner = RemoteSB3VecEnv(task["env"], ENVS, url=url, kwargs=task["kwargs"])
    env = VecNormalize(inner, norm_obs=False, gamma=GAMMA)
    try:
        model = MaskablePPO("MlpPolicy", env, n_steps=ROLLOUT, batch_size=BATCH, gamma=GAMMA, seed=seed, device="cpu")
        model.learn(steps)
        part = target.with_suffix(".part")
        clustergym.onnx.export(model, part)
        part.replace(target)
    finally:
        env.close()


def main(argv: list[str] | None = None) -> list[dict[str, Any]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="+", metavar="TASK", help="names of tasks, or patterns such as 'dagplace-*'")
    parser.add_argument("--out", type=Path, required=True, help="folder of the models, with a folder for each task")
    parser.add_argument(
        "--steps", type=int, default=0, help="at most, of each model (default those that the task allows)"
    )
    parser.add_argument("--seeds", type=int, default=5, help="how many, from 1 on; a row has five")
    parser.add_argument("--version", default="v2", help="of the benchmark (default v2)")
    parser.add_argument("--url", help="of a server that runs already, ws://host:port; default: one is started")
    args = parser.parse_args(argv)
    if args.steps < 0 or args.seeds < 1:
        parser.error("want --steps of 1 or more, and --seeds of 1 or more")
    names = [task["name"] for task in asked("list", "--version", args.version, *args.tasks)]
    server = None if args.url else LocalServer()
    url = args.url or server.url
    torch.set_num_threads(1)  # more are slower with networks of this size
    made: list[dict[str, Any]] = []
    try:
        for name in names:
            task = asked("show", "--version", args.version, name)
            # PPO learns whole updates: not one step more than the task allows.
            most = min(args.steps or task["steps"], task["steps"])
            steps = max(1, most // (ENVS * ROLLOUT)) * ENVS * ROLLOUT
            (args.out / name).mkdir(parents=True, exist_ok=True)
            for seed in range(1, args.seeds + 1):
                target = args.out / name / f"seed-{seed}.onnx"
                if target.exists():
                    print(f"{target} is there", flush=True)
                    continue
                began = time.monotonic()
                train(task, steps, seed, url, target)
                made.append({"task": name, "seed": seed, "steps": steps, "file": str(target)})
                print(f"{target}: {steps} steps, {time.monotonic() - began:.0f} s", flush=True)
    except KeyboardInterrupt:
        print("interrupted: the same command goes on", flush=True)
        raise SystemExit(130) from None
    finally:
        if server is not None:
            server.close()
    return made


if __name__ == "__main__":
    print(json.dumps(main()))
