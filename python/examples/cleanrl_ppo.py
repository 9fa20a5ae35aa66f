"""PPO in one file: a vector of remote environments, a network, an update. It needs only PyTorch in addition.

    python cleanrl_ppo.py --env JobSelect-v1 --steps 50000 --envs 16

It starts a server of its own; --url names one that runs already. Ctrl-C saves the model so far, and --resume goes on with it.
Illegal actions are masked in the policy, while acting
and while learning. A truncated episode is not a failure: its last reward gets the value of the true last observation. Ends
with a comparison to random legal actions on the same episodes.
"""

from __future__ import annotations

import argparse
import json
from collections import deque
from typing import Any

import numpy as np
import paired
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from torch import nn

from clustergym import RemoteVectorEnv

NEVER = -1e8  # logit of an illegal action


class Agent(nn.Module):
    """Two networks of tanh layers, one for logits, one for values; illegal actions have no probability."""

    def __init__(self, inputs: int, actions: int, width: int = 64) -> None:
        super().__init__()
        self.policy = self._network(inputs, width, actions, gain=0.01)
        self.value = self._network(inputs, width, 1, gain=1.0)

    @staticmethod
    def _network(inputs: int, width: int, outputs: int, gain: float) -> nn.Sequential:
        layers = [nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, outputs)]
        for layer, g in ((layers[0], 2**0.5), (layers[2], 2**0.5), (layers[4], gain)):
            nn.init.orthogonal_(layer.weight, g)
            nn.init.zeros_(layer.bias)
        return nn.Sequential(*layers)

    def distribution(self, obs: torch.Tensor, mask: torch.Tensor) -> torch.distributions.Categorical:
        logits = self.policy(obs)
        return torch.distributions.Categorical(logits=torch.where(mask, logits, torch.full_like(logits, NEVER)))

    @torch.no_grad()
    def greedy(self, obs: Any, masks: np.ndarray) -> np.ndarray:
        logits = self.policy(torch.as_tensor(obs))
        return logits.masked_fill(~torch.as_tensor(masks), NEVER).argmax(dim=1).numpy()


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    paired.add_arguments(parser, steps=50_000, envs=16)
    parser.add_argument("--rollout", type=int, default=128, help="steps of each environment between updates")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--minibatches", type=int, default=4)
    parser.add_argument("--lr", type=float, default=1e-3, help="learning rate at the start; it goes down to 0")
    parser.add_argument("--gamma", type=float, default=0.999)
    parser.add_argument("--gae-lambda", type=float, default=0.95)
    parser.add_argument("--clip", type=float, default=0.2)
    parser.add_argument("--entropy", type=float, default=0.01)
    return paired.parse(parser, argv)


def main(argv: list[str] | None = None) -> dict[str, Any]:
    args = parse(argv)
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    options = paired.options(args)
    # The returns of episodes, for the lines of progress, beside the metrics that come by themselves.
    info = ["episode", "metrics"]
    envs = RemoteVectorEnv(args.env, args.envs, autoreset_mode=AutoresetMode.SAME_STEP, info=info, **options)
    try:
        agent = train(envs, args, rng)
    finally:
        envs.close()
    return paired.compare(agent.greedy, args, options)


def train(envs: RemoteVectorEnv, args: argparse.Namespace, rng: np.random.Generator) -> Agent:
    if not isinstance(envs.single_action_space, spaces.Discrete):
        raise SystemExit(f"{args.env} has actions {envs.single_action_space}; this example is for numbered ones")
    agent = Agent(envs.single_observation_space.shape[0], int(envs.single_action_space.n))
    adam = torch.optim.Adam(agent.parameters(), lr=args.lr, eps=1e-5)
    if args.resume:
        saved = torch.load(args.resume)
        agent.load_state_dict(saved["agent"])
        adam.load_state_dict(saved["adam"])

    def save(file: str) -> None:
        torch.save({"agent": agent.state_dict(), "adam": adam.state_dict()}, file)

    try:
        improve(agent, adam, envs, args, rng)
    except KeyboardInterrupt:
        paired.interrupted(save, args, ".pt")
    if args.save:
        save(args.save)
    return agent


def improve(
    agent: Agent,
    adam: torch.optim.Adam,
    envs: RemoteVectorEnv,
    args: argparse.Namespace,
    rng: np.random.Generator,
) -> None:
    n, t_max = args.envs, args.rollout
    inputs, actions = envs.single_observation_space.shape[0], int(envs.single_action_space.n)
    observations = torch.zeros(t_max, n, inputs)
    masks = torch.zeros(t_max, n, actions, dtype=torch.bool)
    chosen = torch.zeros(t_max, n, dtype=torch.int64)
    logprobs, values, rewards = (torch.zeros(t_max, n) for _ in range(3))
    ended = torch.zeros(t_max, n)

    obs, info = envs.reset(seed=args.seed)
    updates = max(1, args.steps // (n * t_max))
    progress, returns, jct = paired.Progress(args.steps), deque(maxlen=100), deque(maxlen=100)
    for update in range(updates):
        adam.param_groups[0]["lr"] = args.lr * (1 - update / updates)
        for t in range(t_max):
            observations[t] = torch.as_tensor(obs)
            masks[t] = torch.as_tensor(paired.legal(info, n, actions))
            with torch.no_grad():
                choice = agent.distribution(observations[t], masks[t])
                chosen[t] = choice.sample()
                logprobs[t] = choice.log_prob(chosen[t])
                values[t] = agent.value(observations[t]).squeeze(1)
            obs, reward, terminated, truncated, info = envs.step(chosen[t].numpy())
            reward = reward.copy()
            cut = np.flatnonzero(truncated & ~terminated)
            if len(cut):
                last = torch.as_tensor(np.stack([info["final_obs"][i] for i in cut]))
                with torch.no_grad():
                    reward[cut] += args.gamma * agent.value(last).squeeze(1).numpy()
            if "final_info" in info:
                last_info = info["final_info"]
                returns.extend(last_info["episode"]["r"][last_info["_episode"]].tolist())
                if "jct_s" in last_info:
                    jct.extend(last_info["jct_s"][last_info["_jct_s"]].tolist())
            rewards[t] = torch.as_tensor(reward, dtype=torch.float32)
            ended[t] = torch.as_tensor(terminated | truncated, dtype=torch.float32)

        with torch.no_grad():
            following, advantage = agent.value(torch.as_tensor(obs)).squeeze(1), torch.zeros(n)
            advantages = torch.zeros(t_max, n)
            for t in reversed(range(t_max)):
                goes_on = 1 - ended[t]
                error = rewards[t] + args.gamma * goes_on * following - values[t]
                advantage = error + args.gamma * args.gae_lambda * goes_on * advantage
                advantages[t], following = advantage, values[t]
        targets = advantages + values

        flat = [x.flatten(0, 1) for x in (observations, masks, chosen, logprobs, advantages, targets)]
        for _ in range(args.epochs):
            for rows in np.array_split(rng.permutation(n * t_max), args.minibatches):
                o, m, a, old, adv, target = (x[torch.as_tensor(rows)] for x in flat)
                policy = agent.distribution(o, m)
                ratio = (policy.log_prob(a) - old).exp()
                adv = (adv - adv.mean()) / (adv.std() + 1e-8)
                policy_loss = -torch.min(ratio * adv, ratio.clamp(1 - args.clip, 1 + args.clip) * adv).mean()
                value_loss = 0.5 * (agent.value(o).squeeze(1) - target).square().mean()
                loss = policy_loss + 0.5 * value_loss - args.entropy * policy.entropy().mean()
                adam.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                adam.step()

        recent = [float(np.mean(x)) if x else None for x in (returns, jct)]
        progress.show((update + 1) * n * t_max, *recent, last=update == updates - 1)


if __name__ == "__main__":
    print(json.dumps(main()))
