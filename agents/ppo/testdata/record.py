"""Records one update of Stable-Baselines3's PPO for sb3_test.go:  python record.py > update.json

Needs stable_baselines3. Three environments play a script: what they show and pay does not depend on the actions, and
one episode is cut off and another ends within the rollout. The minibatch is the whole rollout, so that the order of its
steps, which SB3 draws, changes nothing but rounding. Matrices are [in, out].
"""

import json
import sys

import gymnasium
import numpy as np
import stable_baselines3
import torch
from stable_baselines3.common.vec_env import DummyVecEnv

ROWS, STEPS, WIDTH = 3, 5, 4
rng = np.random.default_rng(11)
SHOWN = rng.normal(size=(STEPS + 1, ROWS, WIDTH)).astype(np.float32)
PAID = np.round(rng.normal(size=(STEPS, ROWS)) - 0.5, 2)
FINAL = rng.normal(size=(2, WIDTH)).astype(np.float32)
TRUNCATED, TERMINATED = (1, 0), (3, 2)  # (step, row); what they end with stands in FINAL in this order


class Script(gymnasium.Env):
    """Row i of the script. Its reset after an end shows what the script shows next."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (WIDTH,))
    action_space = gymnasium.spaces.Discrete(3)

    def __init__(self, i):
        self.i, self.t = i, 0

    def reset(self, *, seed=None, options=None):
        return SHOWN[self.t, self.i], {}

    def step(self, action):
        at, reward = (self.t, self.i), PAID[self.t, self.i]
        self.t += 1
        if at == TRUNCATED:
            return FINAL[0], reward, False, True, {}
        if at == TERMINATED:
            return FINAL[1], reward, True, False, {}
        return SHOWN[self.t, self.i], reward, False, False, {}


def weights(policy):
    names = {
        "actor.trunk.0": policy.mlp_extractor.policy_net[0], "actor.trunk.1": policy.mlp_extractor.policy_net[2],
        "actor.policy": policy.action_net,
        "critic.trunk.0": policy.mlp_extractor.value_net[0], "critic.trunk.1": policy.mlp_extractor.value_net[2],
        "critic.value": policy.value_net,
    }  # fmt: skip
    found = {}
    for name, layer in names.items():
        found[name + ".weight"] = layer.weight.detach().numpy().T.flatten().tolist()
        found[name + ".bias"] = layer.bias.detach().numpy().tolist()
    return found


env = DummyVecEnv([lambda i=i: Script(i) for i in range(ROWS)])
model = stable_baselines3.PPO(
    "MlpPolicy", env, seed=1, device="cpu", n_steps=STEPS, batch_size=ROWS * STEPS, n_epochs=6, learning_rate=0.02,
    gamma=0.9, gae_lambda=0.8, clip_range=0.1, ent_coef=0.01, vf_coef=0.5, max_grad_norm=0.5,
    policy_kwargs={"net_arch": [5, 5]},
)  # fmt: skip
with torch.no_grad():
    model.policy.action_net.weight *= 100  # else all actions are equally likely, and hardly anything depends on them
before = weights(model.policy)
model.learn(ROWS * STEPS)
buffer = model.rollout_buffer


def column(x):
    """[STEPS, ROWS], whichever way the buffer has been turned."""
    return x.reshape(ROWS, STEPS).T.flatten().tolist()


json.dump(
    {
        "made": f"stable_baselines3 {stable_baselines3.__version__}, torch {torch.__version__.split('+')[0]}",
        "rows": ROWS, "steps": STEPS, "shown": SHOWN.flatten().tolist(), "paid": PAID.flatten().tolist(),
        "final": FINAL.flatten().tolist(), "truncated": TRUNCATED, "terminated": TERMINATED,
        "action": column(buffer.actions), "logp": column(buffer.log_probs), "value": column(buffer.values),
        "advantage": column(buffer.advantages),
        "before": before, "after": weights(model.policy),
    },
    sys.stdout,
)  # fmt: skip
print()
