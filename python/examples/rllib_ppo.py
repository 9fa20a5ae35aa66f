"""PPO of RLlib with masked actions; each env runner steps its environments in one round trip.

    python rllib_ppo.py --env JobSelect-v1 --steps 50000 --envs 16 --runners 2

It starts a server of its own for each env runner; --url names one that runs already. Ctrl-C saves the model so far, and
--resume goes on with it. Ends with a comparison to random legal actions on the same episodes.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import paired
import ray
import torch
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from clustergym.rllib import ActionMaskPPOModule, register


class Metrics(RLlibCallback):
    """Keeps the job completion time of episodes beside RLlib's own figures."""

    def on_episode_end(self, *, episode: Any, metrics_logger: Any, **_: Any) -> None:
        last = episode.get_infos(-1)
        if "jct_s" in last:
            metrics_logger.log_value("jct_s", last["jct_s"], window=100)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    paired.add_arguments(parser, steps=50_000, envs=16)
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
            train_batch_size_per_learner=args.batch,
            minibatch_size=256,
            num_epochs=4,
            lr=args.lr,
            gamma=args.gamma,
            lambda_=0.95,
            entropy_coeff=0.01,
            vf_clip_param=float("inf"),
        )
        .callbacks(Metrics)
        .debugging(seed=args.seed, log_level="ERROR")
    )


def learn(config: PPOConfig, args: argparse.Namespace) -> tuple[list[dict[str, Any]], Any]:
    """Train for args.steps; return what each iteration saw, and the network."""
    seen: list[dict[str, Any]] = []
    algorithm = config.build_algo()
    try:
        before = 0
        if args.resume:
            algorithm.restore_from_path(str(Path(args.resume).resolve()))
            before = int(algorithm.metrics.peek(("env_runners", "num_env_steps_sampled_lifetime"), default=0))
        progress = paired.Progress(args.steps)
        try:
            while not seen or seen[-1]["steps"] < args.steps:
                runners = algorithm.train()["env_runners"]
                seen.append({
                    "steps": int(runners["num_env_steps_sampled_lifetime"]) - before,
                    "return": float(runners.get("episode_return_mean", float("nan"))),
                })  # fmt: skip
                now = seen[-1]
                progress.show(now["steps"], now["return"], runners.get("jct_s"), last=now["steps"] >= args.steps)
        except KeyboardInterrupt:
            paired.interrupted(lambda folder: save(algorithm, folder), args, "")
        if args.save:
            save(algorithm, args.save)
        return seen, algorithm.get_module()
    finally:
        algorithm.stop()


def save(algorithm: Algorithm, folder: str) -> None:
    algorithm.save_to_path(str(Path(folder).resolve()))


def greedy(module: Any) -> paired.Act:
    """The likeliest action of RLlib's network."""

    @torch.no_grad()
    def act(obs: Any, _: np.ndarray) -> np.ndarray:
        batch = {Columns.OBS: {key: torch.as_tensor(part) for key, part in obs.items()}}
        return module.forward_inference(batch)[Columns.ACTION_DIST_INPUTS].argmax(dim=1).numpy()

    return act


def main(argv: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    args = paired.parse(parser, argv)
    # "local": a node of its own, also where Ray finds the address of another one, which may have ended.
    ray.init("local", num_cpus=args.runners + 1, include_dashboard=False, log_to_driver=False)
    try:
        seen, module = learn(configure(args, url=args.url), args)
    finally:
        ray.shutdown()
    # As in training, the mask is a field of the observation.
    compared = paired.compare(greedy(module), args, paired.options(args) | {"mask": ["obs", "info"]})
    return compared | {"first": seen[0], "last": seen[-1]}


if __name__ == "__main__":
    print(json.dumps(main()))
