"""PPO and double DQN in PyTorch on JobSelect-v1 over the bridge, with the network of the preset quickstart-exact.

Observations come flat from a server beside this process; masks come with every step. Plain loops, and the same network
layer by layer: kernels that cover an image without overlap are dense layers of its blocks, which PyTorch is faster at.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import play
import torch
from gymnasium.vector import AutoresetMode
from torch import nn
from torch.nn import functional

NEVER = -1e8  # logit of an illegal action
SLOTS, ROWS = 10, 20
CLUSTER, GLOBAL, JOBS = ROWS * 32, 8, SLOTS * 10  # elements of the fields; what is left is the queue


def dense(inputs: int, outputs: int, gain: float = 2**0.5, bias: bool = True) -> nn.Linear:
    """A dense layer of orthogonal weights."""
    layer = nn.Linear(inputs, outputs, bias=bias)
    nn.init.orthogonal_(layer.weight, gain)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


class Network(nn.Module):
    """A branch for each field, a trunk over all, and one small network that scores every slot."""

    def __init__(self, gain: float, value: bool) -> None:
        super().__init__()
        self.blocks, self.cluster = dense(ROWS * 4, 16), dense(8 * 16, 32)
        self.jobs, self.queue = dense(10, 32), dense(ROWS * 8, 16)
        self.trunk = dense(32 + GLOBAL + 2 * 48, 128)
        self.slot, self.context = dense(48, 64, 1.0, bias=False), dense(128, 64, 1.0)
        self.each, self.wait = dense(64, 1, gain), dense(128, 1, gain)
        self.value = dense(128, 1, 1.0) if value else None

    def forward(self, obs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """A number for each action, and the value."""
        n = len(obs)
        cluster, rest, jobs, queue = obs.split([CLUSTER, GLOBAL, JOBS, obs.shape[1] - CLUSTER - GLOBAL - JOBS], dim=1)
        columns = cluster.view(n, ROWS, 8, 4).transpose(1, 2).reshape(n, 8, -1)
        machines = functional.relu(self.cluster(functional.relu(self.blocks(columns)).flatten(1)))
        columns = queue.view(n, ROWS, SLOTS, 8).transpose(1, 2).reshape(n, SLOTS, -1)
        slots = torch.cat(
            [functional.relu(self.jobs(jobs.view(n, SLOTS, 10))), functional.relu(self.queue(columns))], dim=2
        )
        trunk = functional.relu(self.trunk(torch.cat([machines, rest, slots.mean(dim=1), slots.amax(dim=1)], dim=1)))
        hidden = functional.relu(self.slot(slots) + self.context(trunk)[:, None, :])
        scores = torch.cat([self.each(hidden).squeeze(2), self.wait(trunk)], dim=1)
        return scores, None if self.value is None else self.value(trunk).squeeze(1)


class Scale:
    """Divides rewards by the running deviation of their discounted sum."""

    def __init__(self, n: int, gamma: float) -> None:
        self.sums, self.gamma = np.zeros(n), gamma
        self.count, self.mean, self.squares = 0.0, 0.0, 0.0

    def __call__(self, reward: Any, ended: Any) -> Any:
        self.sums = self.sums * self.gamma + reward
        n, mean = len(self.sums), self.sums.mean()
        apart, total = mean - self.mean, self.count + n
        self.squares += ((self.sums - mean) ** 2).sum() + apart**2 * self.count * n / total
        self.mean, self.count = self.mean + apart * n / total, total
        self.sums[ended] = 0
        return reward / (self.squares / self.count + 1e-8) ** 0.5


class Clock(play.Run):
    """The clock alone: episodes are judged as training plays them."""

    def __init__(self, job: dict[str, Any]) -> None:
        super().__init__(job, lambda n, first: [0.0] * n, lambda: None, lambda kept: None)
        self.returns: deque[float] = deque(maxlen=100)

    def ends(self, info: dict[str, Any], ended: Any) -> None:
        """Takes the returns of the episodes that a step ended."""
        if ended.any():
            self.returns.extend(info["final_info"]["episode"]["r"][ended].tolist())

    def finish(self, step: int) -> dict[str, Any]:
        assert self._from is not None
        seconds, processor = play.minus(play.now(), self._from[0])
        return {
            "steps": step,
            "timed_steps": step - self._from[1],
            "seconds": seconds,
            "processor_s": processor,
            "startup_s": self.startup,
            "training_return": float(np.mean(self.returns)) if self.returns else None,
        }


def train(job: dict[str, Any]) -> dict[str, Any]:
    """Trains with job's algorithm; PyTorch has one thread, the server beside it what is left of the machine."""
    from clustergym import LocalServer, RemoteVectorEnv

    torch.set_num_threads(1)
    torch.manual_seed(job["seed"])
    with LocalServer() as server:
        envs = RemoteVectorEnv(
            job["env"],
            job["settings"]["envs"],
            url=server.url,
            info="episode",
            autoreset_mode=AutoresetMode.SAME_STEP,
            kwargs=job["world"],
        )
        try:
            return (ppo if job["algorithm"] == "ppo" else ddqn)(job, job["settings"], envs)
        finally:
            envs.close()


def ppo(job: dict[str, Any], s: dict[str, Any], envs: Any) -> dict[str, Any]:
    net = Network(0.01, value=True)
    adam = torch.optim.Adam(net.parameters(), lr=s["lr"], eps=1e-5, fused=True)
    n, t_max, rng = s["envs"], s["steps"], np.random.default_rng(job["seed"])
    obs, info = envs.reset(seed=job["seed"])
    seen = torch.zeros(t_max, n, obs.shape[1])
    masks, chosen = torch.zeros(t_max, n, SLOTS + 1, dtype=torch.bool), torch.zeros(t_max, n, dtype=torch.int64)
    logprobs, values, rewards, goes_on = (torch.zeros(t_max, n) for _ in range(4))
    scale, run, updates = Scale(n, s["gamma"]), Clock(job), job["budget"] // (n * t_max)

    def look(o: torch.Tensor, m: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        logits, value = net(o)
        return torch.log_softmax(torch.where(m, logits, NEVER), dim=1), value

    for update in range(updates):
        run.update_begins(update * n * t_max)
        adam.param_groups[0]["lr"] = s["lr"] * (1 - update / updates)
        with torch.inference_mode():
            for t in range(t_max):
                seen[t], masks[t] = torch.from_numpy(obs), torch.from_numpy(np.asarray(info["action_mask"], bool))
                logp, values[t] = look(seen[t], masks[t])
                chosen[t] = torch.multinomial(logp.exp(), 1).squeeze(1)
                logprobs[t] = logp.gather(1, chosen[t][:, None]).squeeze(1)
                obs, reward, terminated, truncated, info = envs.step(chosen[t].numpy())
                ended = terminated | truncated  # none of these episodes is cut off
                run.ends(info, ended)
                rewards[t] = torch.from_numpy(scale(reward, ended))
                goes_on[t] = torch.from_numpy(1.0 - ended)
            following, running = net(torch.from_numpy(obs))[1], torch.zeros(n)
            advantages = torch.zeros(t_max, n)
            for t in reversed(range(t_max)):
                error = rewards[t] + s["gamma"] * goes_on[t] * following - values[t]
                running = error + s["gamma"] * s["lam"] * goes_on[t] * running
                advantages[t], following = running, values[t]
        flat = [x.flatten(0, 1) for x in (seen, masks, chosen, logprobs, advantages, advantages + values)]
        for _ in range(s["epochs"]):
            for rows in torch.from_numpy(rng.permutation(n * t_max)).split(s["batch"]):
                o, m, a, old, adv, target = (x[rows] for x in flat)
                logp, value = look(o, m)
                ratio = (logp.gather(1, a[:, None]).squeeze(1) - old).exp()
                adv = (adv - adv.mean()) / (adv.std() + 1e-8)
                gain = torch.min(ratio * adv, ratio.clamp(1 - s["clip"], 1 + s["clip"]) * adv).mean()
                loss = 0.5 * functional.mse_loss(value, target) - gain
                adam.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(net.parameters(), 0.5)
                adam.step()
    return run.finish(updates * n * t_max)


def ddqn(job: dict[str, Any], s: dict[str, Any], envs: Any) -> dict[str, Any]:
    online, target = Network(1.0, value=False), Network(1.0, value=False)
    target.load_state_dict(online.state_dict())
    adam = torch.optim.Adam(online.parameters(), lr=s["lr"], fused=True)
    n, rng, size = s["envs"], np.random.default_rng(job["seed"]), s["buffer"]
    obs, info = envs.reset(seed=job["seed"])
    kept, after = (np.zeros((size, obs.shape[1]), np.float32) for _ in range(2))
    kept_mask, kept_action = np.zeros((size, SLOTS + 1), bool), np.zeros(size, np.int64)
    kept_reward, kept_on = (np.zeros(size, np.float32) for _ in range(2))
    run = Clock(job)
    for step in range(0, job["budget"], n):
        run.update_begins(step)
        eps = max(1.0 + (s["eps_end"] - 1.0) * step / (s["eps_share"] * job["budget"]), s["eps_end"])
        mask = np.asarray(info["action_mask"], bool)
        with torch.inference_mode():
            scores = online(torch.from_numpy(obs))[0].numpy()
        greedy = np.where(mask, scores, -np.inf).argmax(axis=1)
        drawn = np.where(mask, rng.random(mask.shape), -1.0).argmax(axis=1)
        action = np.where(rng.random(n) < eps, drawn, greedy)
        rows = (step + np.arange(n)) % size
        kept[rows], kept_action[rows] = obs, action
        obs, reward, terminated, truncated, info = envs.step(action)
        ended = terminated | truncated
        run.ends(info, ended)
        # What comes after an end is not looked at.
        after[rows], kept_mask[rows], kept_on[rows] = obs, info["action_mask"], 1.0 - ended
        kept_reward[rows] = reward
        now = step + n
        if now >= s["starts"] and now // s["train_every"] != step // s["train_every"]:
            for _ in range(s["gradient_steps"]):
                rows = rng.integers(min(now, size), size=s["batch"])
                with torch.inference_mode():
                    then = torch.from_numpy(after[rows])
                    best = torch.where(torch.from_numpy(kept_mask[rows]), online(then)[0], NEVER).argmax(dim=1)
                    value = target(then)[0].gather(1, best[:, None]).squeeze(1)
                    aim = torch.from_numpy(kept_reward[rows]) + s["gamma"] * torch.from_numpy(kept_on[rows]) * value
                scores = online(torch.from_numpy(kept[rows]))[0]
                taken = scores.gather(1, torch.from_numpy(kept_action[rows])[:, None]).squeeze(1)
                adam.zero_grad(set_to_none=True)
                functional.smooth_l1_loss(taken, aim.clone()).backward()
                nn.utils.clip_grad_norm_(online.parameters(), s["max_grad_norm"])
                adam.step()
        if now // s["target_every"] != step // s["target_every"]:
            target.load_state_dict(online.state_dict())
    return run.finish(job["budget"])
