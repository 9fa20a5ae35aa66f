"""PPO of RLlib with masked actions; each env runner steps its environments in one round trip.

    python rllib_ppo.py --env JobSelect-v1 --steps 100000 --envs 16 --runners 2

It starts a server of its own for each env runner; --url names one that runs already.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

import paired
from clustergym.rllib import ActionMaskPPOModule, register


def add_arguments(parser: argparse.ArgumentParser) -> None:
    paired.add_arguments(parser, steps=100_000, envs=16)
    parser.add_argument("--runners", type=int, default=2, help="env runners, --envs environments each")
    parser.add_argument("--batch", type=int, default=4_000, help="steps between updates")
    parser.add_argument("--gamma", type=float, default=0.999)
    parser.add_argument("--lr", type=float, default=1e-3)


def configure(args: argparse.Namespace, **where: Any) -> PPOConfig:
    """PPO on args.env; where says which servers the env runners take."""
    return (
        PPOConfig()
        .environment(register(), env_config={"env": args.env, "kwargs": args.kwargs, **where})
        .env_runners(
            num_env_runners=args.runners,
            num_envs_per_env_runner=args.envs,
            gym_env_vectorize_mode="vector_entry_point",
        )
        .rl_module(
            rl_module_spec=RLModuleSpec(
                module_class=ActionMaskPPOModule,
                model_config=DefaultModelConfig(fcnet_hiddens=[64, 64], fcnet_activation="tanh", vf_share_layers=False),
            )
        )
        .training(
            train_batch_size_per_learner=args.batch, minibatch_size=256, num_epochs=4, lr=args.lr, gamma=args.gamma,
            lambda_=0.95, entropy_coeff=0.01, vf_clip_param=float("inf"),
        )  # fmt: skip
        .debugging(seed=args.seed, log_level="ERROR")
    )


def learn(config: PPOConfig, steps: int) -> list[dict[str, Any]]:
    """Train for so many steps and return what each iteration saw."""
    seen: list[dict[str, Any]] = []
    algorithm = config.build_algo()
    try:
        while not seen or seen[-1]["steps"] < steps:
            runners = algorithm.train()["env_runners"]
            seen.append({
                "steps": int(runners["num_env_steps_sampled_lifetime"]),
                "return": float(runners.get("episode_return_mean", float("nan"))),
            })  # fmt: skip
            print(f"step {seen[-1]['steps']:>8}  return {seen[-1]['return']:.4f}", flush=True)
    finally:
        algorithm.stop()
    return seen


def main(argv: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    args = parser.parse_args(argv)
    ray.init(num_cpus=args.runners + 1, include_dashboard=False, log_to_driver=False)
    try:
        seen = learn(configure(args, url=args.url), args.steps)
    finally:
        ray.shutdown()
    return {"env": args.env, "first": seen[0], "last": seen[-1]}


if __name__ == "__main__":
    print(json.dumps(main()))
