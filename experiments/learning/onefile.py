"""PPO and DQN in PyTorch as single-file implementations have them: plain loops over Gymnasium's vector environments.

Written after the description of CleanRL's ppo.py and dqn.py and with their defaults, but for what a problem's settings
say. As there, PPO takes an episode that was cut off for one that ended, and Adam is not fused.
"""

from __future__ import annotations

import copy
import random
from typing import Any

import gymnasium as gym
import numpy as np
import play
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from torch import nn
from torch.nn import functional


def vector(env: str, n: int) -> SyncVectorEnv:
    """n environments that begin the next episode within the step that ended the last one."""

    def make() -> gym.Env[Any, Any]:
        return gym.wrappers.RecordEpisodeStatistics(gym.make(env))

    return SyncVectorEnv([make] * n, autoreset_mode=AutoresetMode.SAME_STEP)


def network(inputs: int, hidden: list[int], outputs: int, activation: Any) -> nn.Sequential:
    """Dense layers with an activation between them."""
    widths, layers = [inputs, *hidden, outputs], []
    for i in range(len(widths) - 1):
        layers += [nn.Linear(widths[i], widths[i + 1]), activation()]
    return nn.Sequential(*layers[:-1])


def orthogonal(net: nn.Sequential, gain: float) -> nn.Sequential:
    """Orthogonal weights, of gain √2 but in the last layer, and biases of 0."""
    dense = [m for m in net if isinstance(m, nn.Linear)]
    for layer in dense:
        nn.init.orthogonal_(layer.weight, gain if layer is dense[-1] else 2**0.5)
        nn.init.zeros_(layer.bias)
    return net


class Agent(nn.Module):
    """A policy and a value network, apart from each other."""

    def __init__(self, inputs: int, hidden: list[int], actions: int) -> None:
        super().__init__()
        self.critic = orthogonal(network(inputs, hidden, 1, nn.Tanh), 1.0)
        self.actor = orthogonal(network(inputs, hidden, actions, nn.Tanh), 0.01)

    def look(self, obs: torch.Tensor, action: torch.Tensor | None = None) -> tuple[torch.Tensor, ...]:
        """An action, drawn where none is given, its log-probability, the entropy and the value."""
        policy = torch.distributions.Categorical(logits=self.actor(obs))
        action = policy.sample() if action is None else action
        return action, policy.log_prob(action), policy.entropy(), self.critic(obs)


def greedy(net: nn.Module) -> play.Act:
    """Takes the action of the highest output."""

    def act(obs: Any) -> Any:
        with torch.inference_mode():
            return net(torch.as_tensor(obs)).argmax(dim=1).numpy()

    return act


def watch(job: dict[str, Any], net: nn.Module, acting: nn.Module) -> play.Run:
    """The run of net, of which acting plays."""
    act = greedy(acting)
    return play.Run(
        job,
        lambda n, first: play.episodes(act, job["env"], n, first),
        lambda: copy.deepcopy(net.state_dict()),
        net.load_state_dict,
    )


def train(job: dict[str, Any]) -> dict[str, Any]:
    """Trains with job's algorithm, on one thread."""
    torch.set_num_threads(1)
    torch.manual_seed(job["seed"])
    np.random.seed(job["seed"])
    random.seed(job["seed"])
    return (ppo if job["algorithm"] == "ppo" else dqn)(job, job["settings"])


def ppo(job: dict[str, Any], s: dict[str, Any]) -> dict[str, Any]:
    envs = vector(job["env"], s["envs"])
    shape, actions = envs.single_observation_space.shape, int(envs.single_action_space.n)
    agent = Agent(shape[0], s["hidden"], actions)
    adam = torch.optim.Adam(agent.parameters(), lr=s["lr"], eps=1e-5)
    n, t_max = s["envs"], s["steps"]
    obs = torch.zeros((t_max, n, *shape))
    chosen, logprobs, rewards, dones, values = (torch.zeros((t_max, n)) for _ in range(5))

    run = watch(job, agent, agent.actor)
    step, updates = 0, job["budget"] // (n * t_max)
    next_obs = torch.as_tensor(envs.reset(seed=job["seed"])[0])
    next_done = torch.zeros(n)
    for update in range(updates):
        run.update_begins(step)
        if s["anneal_lr"]:
            adam.param_groups[0]["lr"] = (1.0 - update / updates) * s["lr"]
        for t in range(t_max):
            step += n
            obs[t], dones[t] = next_obs, next_done
            with torch.no_grad():
                action, logprobs[t], _, value = agent.look(next_obs)
            chosen[t], values[t] = action, value.flatten()
            new, reward, terminated, truncated, _ = envs.step(action.numpy())
            rewards[t] = torch.as_tensor(reward)
            next_obs, next_done = torch.as_tensor(new), torch.as_tensor(terminated | truncated, dtype=torch.float32)

        with torch.no_grad():  # generalised advantages
            after = agent.critic(next_obs).flatten()
            advantages, running = torch.zeros((t_max, n)), torch.zeros(n)
            for t in reversed(range(t_max)):
                goes_on = 1.0 - (next_done if t == t_max - 1 else dones[t + 1])
                following = after if t == t_max - 1 else values[t + 1]
                error = rewards[t] + s["gamma"] * following * goes_on - values[t]
                advantages[t] = running = error + s["gamma"] * s["lam"] * goes_on * running
            targets = advantages + values

        b_obs = obs.reshape((-1, *shape))
        b_chosen, b_logprobs, b_advantages, b_targets, b_values = (
            x.reshape(-1) for x in (chosen.long(), logprobs, advantages, targets, values)
        )
        order = np.arange(n * t_max)
        for _ in range(s["epochs"]):
            np.random.shuffle(order)
            for start in range(0, len(order), s["batch"]):
                rows = order[start : start + s["batch"]]
                _, logprob, entropy, value = agent.look(b_obs[rows], b_chosen[rows])
                ratio = (logprob - b_logprobs[rows]).exp()
                adv = b_advantages[rows]
                adv = (adv - adv.mean()) / (adv.std() + 1e-8)
                policy_loss = torch.max(-adv * ratio, -adv * ratio.clamp(1 - s["clip"], 1 + s["clip"])).mean()
                value = value.view(-1)
                errors = (value - b_targets[rows]) ** 2
                if s["clip_value"]:
                    change = (value - b_values[rows]).clamp(-s["clip_value"], s["clip_value"])
                    errors = torch.max(errors, (b_values[rows] + change - b_targets[rows]) ** 2)
                loss = policy_loss - s["ent"] * entropy.mean() + 0.5 * (0.5 * errors.mean())
                adam.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                adam.step()
        run.stepped(step)
    envs.close()
    return run.finish(step)


def dqn(job: dict[str, Any], s: dict[str, Any]) -> dict[str, Any]:
    envs = vector(job["env"], 1)
    inputs, actions = envs.single_observation_space.shape[0], int(envs.single_action_space.n)
    online, target = (network(inputs, s["hidden"], actions, nn.ReLU) for _ in range(2))
    target.load_state_dict(online.state_dict())
    adam = torch.optim.Adam(online.parameters(), lr=s["lr"])
    kept_obs, kept_next = (np.zeros((s["buffer"], inputs), np.float32) for _ in range(2))
    kept_action = np.zeros((s["buffer"], 1), np.int64)
    kept_reward, kept_end = (np.zeros(s["buffer"], np.float32) for _ in range(2))

    run = watch(job, online, online)
    obs, _ = envs.reset(seed=job["seed"])
    for step in range(job["budget"]):
        if step % s["train_every"] == 0:
            run.update_begins(step)
        eps = max(1.0 + (s["eps_end"] - 1.0) * step / (s["eps_share"] * job["budget"]), s["eps_end"])
        if random.random() < eps:
            action = np.array([random.randrange(actions)])
        else:
            with torch.no_grad():
                action = online(torch.as_tensor(obs)).argmax(dim=1).numpy()
        after, reward, terminated, truncated, info = envs.step(action)
        row = step % s["buffer"]
        # A cut-off episode goes on from what really came last.
        kept_next[row] = info["final_obs"][0] if truncated[0] or terminated[0] else after[0]
        kept_obs[row], kept_action[row], kept_reward[row], kept_end[row] = obs[0], action, reward[0], terminated[0]
        obs = after
        if step > s["starts"]:
            if step % s["train_every"] == 0:
                for _ in range(s["gradient_steps"]):
                    rows = np.random.randint(0, min(step + 1, s["buffer"]), size=s["batch"])
                    with torch.no_grad():
                        following = target(torch.as_tensor(kept_next[rows])).max(dim=1).values
                        aim = torch.as_tensor(kept_reward[rows]) + s["gamma"] * following * (
                            1 - torch.as_tensor(kept_end[rows])
                        )
                    value = (
                        online(torch.as_tensor(kept_obs[rows])).gather(1, torch.as_tensor(kept_action[rows])).squeeze(1)
                    )
                    loss = (functional.smooth_l1_loss if s["huber"] else functional.mse_loss)(aim, value)
                    adam.zero_grad()
                    loss.backward()
                    if s["max_grad_norm"]:
                        nn.utils.clip_grad_norm_(online.parameters(), s["max_grad_norm"])
                    adam.step()
            if step % s["target_every"] == 0:
                target.load_state_dict(online.state_dict())
        run.stepped(step + 1)
    envs.close()
    return run.finish(job["budget"])
