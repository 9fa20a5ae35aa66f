"""What the examples of Stable-Baselines3 share: progress while a model learns, and an end by Ctrl-C that loses nothing."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import paired

from clustergym.sb3 import MetricsCallback


class Progress(MetricsCallback):
    """Prints steps, return and JCT now and then. The metrics go into SB3's own log too."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self._lines = paired.Progress(steps)
        self._first = 0

    def _on_training_start(self) -> None:
        self._first = self.model.num_timesteps

    def _on_step(self) -> bool:
        super()._on_step()
        self._show()
        return True

    def _on_training_end(self) -> None:
        self._show(last=True)

    def _show(self, last: bool = False) -> None:
        recent = [episode["r"] for episode in self.model.ep_info_buffer or ()]
        mean = float(np.mean(recent)) if recent else None
        self._lines.show(self.num_timesteps - self._first, mean, self.means.get("jct_s"), last)


def train(kind: Any, env: Any, args: argparse.Namespace, **settings: Any) -> Any:
    """A model of a kind (PPO, DQN, …) that has learned for args.steps, from the beginning or from args.resume on."""
    if args.resume:
        model = kind.load(args.resume, env=env, device="cpu")
    else:
        model = kind("MlpPolicy", env, seed=args.seed, device="cpu", **settings)
    try:
        model.learn(args.steps, callback=Progress(args.steps), reset_num_timesteps=not args.resume)
    except KeyboardInterrupt:
        paired.interrupted(model.save, args, ".zip")
    if args.save:
        model.save(args.save)
    return model
