"""What is compared: problems, their settings, and who trains on them.

A problem's settings are written down once, here, and handed to every implementation in its own words. Nothing in this
file needs a library.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

OURS = "ours"
CLEANRL = "PyTorch, one file"  # written here after CleanRL's ppo.py and dqn.py
SB3 = "SB3"
SBX = "SBX"
JAX = "JAX, one program"
MASKABLE = "MaskablePPO, bridge"
BRIDGE = "PyTorch, bridge"


def up(n: int, of: int) -> int:
    """The lowest multiple of ``of`` that is not below n."""
    return -(-n // of) * of


@dataclass(frozen=True)
class PPO:
    """Settings of PPO. Adam's ε is 1e-5, gradients are clipped at a norm of 0.5. Values' squared errors count a half as in
    SB3, or a quarter as in CleanRL's program, which is the one that clips values.
    """

    envs: int
    steps: int  # of each environment in a rollout
    batch: int
    epochs: int
    lr: float
    gamma: float
    lam: float
    ent: float = 0.0
    clip: float = 0.2
    clip_value: float = 0.0  # 0 = values are not clipped
    anneal_lr: bool = False
    anneal_clip: bool = False
    normalize: bool = False  # observations and rewards, by their running deviation
    scale: bool = False  # rewards alone
    hidden: tuple[int, ...] = (64, 64)  # tanh, of two networks; () = the preset's network

    @property
    def rollout(self) -> int:
        """Steps between two updates, of all environments together."""
        return self.envs * self.steps


@dataclass(frozen=True)
class DQN:
    """Settings of DQN with a ReLU network and Adam, whose ε is 1e-8."""

    lr: float
    batch: int
    buffer: int
    starts: int  # steps before the first update
    gamma: float
    target_every: int  # steps between copies to the target network
    train_every: int  # steps between updates
    gradient_steps: int  # of an update
    eps_end: float
    eps_share: float  # of the budget, over which ε falls from 1
    envs: int = 1
    hidden: tuple[int, ...] = (256, 256)  # () = the preset's network
    huber: bool = True  # else the squared error
    max_grad_norm: float = 10.0  # 0 = gradients are not clipped
    double: bool = True  # ours alone: the libraries' DQN is plain

    @property
    def rollout(self) -> int:
        """Steps between two updates."""
        return self.train_every


@dataclass(frozen=True)
class Problem:
    """One problem with one set of settings, and the implementations that train on it."""

    name: str
    title: str
    env: str
    preset: str  # of ours, which the settings are laid over
    settings: PPO | DQN
    budget: int  # steps; the next whole number of updates is taken
    eval_every: int
    others: tuple[str, ...]
    marks: dict[str, float] = field(default_factory=dict)  # wanted ratio of our steps/s to another's
    quick_budget: int = 0  # with --quick; 0 = left out there
    # Arguments of the environment, where it has any. Its agents are then judged by what they earn in training: how they
    # schedule is another comparison, gymctl eval's.
    world: dict[str, Any] = field(default_factory=dict)

    @property
    def implementations(self) -> tuple[str, ...]:
        return (OURS, *self.others)

    def job(self, implementation: str, seed: int, quick: bool) -> dict[str, Any]:
        """All that a worker needs to know, and what a row that was measured is recognised by."""
        budget = self.quick_budget if quick else self.budget
        rollout = self.settings.rollout
        return {
            "kind": "training",
            "problem": self.name,
            "implementation": implementation,
            "seed": seed,
            "env": self.env,
            "preset": self.preset,
            "algorithm": "ppo" if isinstance(self.settings, PPO) else "dqn",
            "settings": dataclasses.asdict(self.settings) | {"hidden": list(self.settings.hidden)},
            "budget": up(budget, rollout),
            # Start-up is over, and whoever fills a buffer first has filled it.
            "clock_from": up(max(budget // 10, getattr(self.settings, "starts", 0)), rollout),
            "eval_every": max(rollout, budget // 4) if quick else self.eval_every,
            "validation": 5 if quick else 20,
            "episodes": 20 if quick else 100,
            "world": self.world,
        }


# The workload of the preset quickstart-exact. Without a baseline that plays beside every episode.
WORLD = {"trace.seed": 2, "trace.synth.jobs": 45_000, "reward": "wait"}

ALL: tuple[Problem, ...] = (
    Problem(
        "cartpole-ppo", "CartPole, PPO, CleanRL's settings", "CartPole-v1", "cartpole-ppo",
        PPO(envs=4, steps=128, batch=128, epochs=4, lr=2.5e-4, anneal_lr=True, gamma=0.99, lam=0.95, ent=0.01, clip_value=0.2),
        100_000, 5_000, (CLEANRL, JAX), {CLEANRL: 15}, 10_000,
    ),
    Problem(
        "cartpole-ppo-zoo", "CartPole, PPO, RL Zoo's settings", "CartPole-v1", "cartpole-ppo-zoo",
        PPO(envs=8, steps=32, batch=256, epochs=20, lr=1e-3, anneal_lr=True, anneal_clip=True, gamma=0.98, lam=0.8),
        100_000, 5_000, (SB3, SBX, JAX), {SB3: 10, SBX: 10}, 10_000,
    ),
    Problem(
        "cartpole-ppo-sb3", "CartPole, PPO, SB3's defaults", "CartPole-v1", "cartpole-ppo",
        PPO(envs=1, steps=2048, batch=64, epochs=10, lr=3e-4, gamma=0.99, lam=0.95),
        100_000, 5_000, (SB3, SBX, JAX), {SB3: 10, SBX: 10}, 8_192,
    ),
    Problem(
        "cartpole-dqn-zoo", "CartPole, DQN, RL Zoo's settings", "CartPole-v1", "cartpole-ddqn",
        DQN(lr=2.3e-3, batch=64, buffer=100_000, starts=1_000, gamma=0.99, target_every=10, train_every=256, gradient_steps=128,
            eps_end=0.04, eps_share=0.08),
        100_000, 5_000, (SB3, SBX), {SB3: 5, SBX: 1.7}, 5_120,
    ),
    Problem(
        "cartpole-dqn", "CartPole, DQN, CleanRL's settings", "CartPole-v1", "cartpole-ddqn",
        DQN(lr=2.5e-4, batch=128, buffer=10_000, starts=10_000, gamma=0.99, target_every=500, train_every=10, gradient_steps=1,
            eps_end=0.05, eps_share=0.5, hidden=(120, 84), huber=False, max_grad_norm=0, double=False),
        200_000, 10_000, (CLEANRL,), {CLEANRL: 5}, 20_000,
    ),
    Problem(
        "acrobot-ppo", "Acrobot, PPO, RL Zoo's settings", "Acrobot-v1", "acrobot-ppo",
        PPO(envs=16, steps=256, batch=64, epochs=4, lr=3e-4, gamma=0.99, lam=0.94, normalize=True),
        500_000, 25_000, (SB3,), {SB3: 10},
    ),
    Problem(
        "mountaincar-dqn", "MountainCar, DQN, RL Zoo's settings", "MountainCar-v0", "mountaincar-ddqn",
        DQN(lr=4e-3, batch=128, buffer=10_000, starts=1_000, gamma=0.98, target_every=600, train_every=16, gradient_steps=8,
            eps_end=0.07, eps_share=0.16),
        150_000, 5_000, (SB3,), {SB3: 5},
    ),
    Problem(
        "invalidaction-ppo", "InvalidAction, PPO with masks", "InvalidAction-v1", "invalidaction-ppo",
        # 98 divides the rollout, so that no library has a small batch left over.
        PPO(envs=1, steps=1666, batch=98, epochs=10, lr=1e-3, gamma=0.4, lam=0.95, ent=0.05, hidden=(256,)),
        4_998, 1_000, (MASKABLE,), {MASKABLE: 10}, 4_998,
    ),
    Problem(
        "jobselect-ppo", "JobSelect, PPO, CNN of four branches", "JobSelect-v1", "quickstart-exact",
        PPO(envs=32, steps=128, batch=512, epochs=4, lr=3e-3, anneal_lr=True, gamma=1.0, lam=0.97, scale=True, hidden=()),
        40_960, 0, (BRIDGE,), {BRIDGE: 3}, 12_288, WORLD,
    ),
    Problem(
        "jobselect-ddqn", "JobSelect, double DQN, the same network", "JobSelect-v1", "quickstart-exact",
        DQN(lr=1e-3, batch=128, buffer=20_000, starts=2_000, gamma=1.0, target_every=500, train_every=16, gradient_steps=1,
            eps_end=0.05, eps_share=0.5, envs=16, hidden=()),
        20_000, 0, (BRIDGE,), {BRIDGE: 3}, 6_000, WORLD,
    ),
)  # fmt: skip
