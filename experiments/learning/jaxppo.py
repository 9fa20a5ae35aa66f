"""PPO as one compiled program: environment, rollout and update in JAX, nothing in Python between two validations.

Everything that a processor spends on other implementations' interpreters, copies and calls is gone here, which makes it
the hardest to beat. CartPole-v1 is written out below; its episodes of 500 steps are cut off, and as in CleanRL a
cut-off counts as an end.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import play

LIMIT = 500
X_MAX, ANGLE_MAX = 2.4, 12 * 2 * np.pi / 360


def begin(key: Any) -> Any:
    """The first state of an episode."""
    return jax.random.uniform(key, (4,), minval=-0.05, maxval=0.05)


def physics(state: Any, action: Any) -> tuple[Any, Any]:
    """The state a fiftieth of a second later, and whether the pole or the cart has gone too far."""
    x, v, angle, turn = state
    force = jnp.where(action == 1, 10.0, -10.0)
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    push = (force + 0.05 * turn**2 * sin) / 1.1
    turning = (9.8 * sin - cos * push) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
    moving = push - 0.05 * turning * cos / 1.1
    state = jnp.stack([x + 0.02 * v, v + 0.02 * moving, angle + 0.02 * turn, turn + 0.02 * turning])
    return state, (jnp.abs(state[0]) > X_MAX) | (jnp.abs(state[2]) > ANGLE_MAX)


def step_env(key: Any, state: Any, age: Any, action: Any) -> tuple[Any, Any, Any]:
    """One step; where it ends the episode the next one begins at once."""
    state, fell = physics(state, action)
    done = fell | (age + 1 >= LIMIT)
    return jnp.where(done, begin(key), state), jnp.where(done, 0, age + 1), done


def dense(key: Any, hidden: list[int], outputs: int, gain: float) -> list[tuple[Any, Any]]:
    """The layers of one network."""
    widths = [4, *hidden, outputs]
    keys = jax.random.split(key, len(widths))
    layers = []
    for i in range(len(widths) - 1):
        scale = gain if i == len(hidden) else 2**0.5
        layers.append(
            (jax.nn.initializers.orthogonal(scale)(keys[i], (widths[i], widths[i + 1])), jnp.zeros(widths[i + 1]))
        )
    return layers


def forward(layers: Any, x: Any) -> Any:
    for w, b in layers[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = layers[-1]
    return x @ w + b


def loss(params: Any, batch: Any, s: dict[str, Any], clip: Any) -> Any:
    obs, action, old, adv, target, old_value = batch
    logp = jax.nn.log_softmax(forward(params["actor"], obs))
    taken = jnp.take_along_axis(logp, action[:, None], axis=1)[:, 0]
    ratio = jnp.exp(taken - old)
    adv = (adv - adv.mean()) / (adv.std(ddof=1) + 1e-8)
    policy = jnp.maximum(-adv * ratio, -adv * jnp.clip(ratio, 1 - clip, 1 + clip)).mean()
    value = forward(params["critic"], obs)[:, 0]
    errors = (value - target) ** 2
    if s["clip_value"]:
        near = old_value + jnp.clip(value - old_value, -s["clip_value"], s["clip_value"])
        errors = jnp.maximum(errors, (near - target) ** 2)
    entropy = -(jnp.exp(logp) * logp).sum(axis=1).mean()
    # SB3 counts half of the whole squared error, CleanRL half of the half.
    share = 0.25 if s["clip_value"] else 0.5
    return policy - s["ent"] * entropy + share * errors.mean()


def program(s: dict[str, Any], updates: int) -> Any:
    """The compiled function that makes n updates."""
    n, t_max, batch = s["envs"], s["steps"], s["batch"]
    minibatches = n * t_max // batch

    def rate(count: Any) -> Any:
        return s["lr"] * (1 - (count // (s["epochs"] * minibatches)) / updates) if s["anneal_lr"] else s["lr"]

    adam = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(rate, eps=1e-5))

    def start(key: Any) -> Any:
        a, c, e, key = jax.random.split(key, 4)
        params = {"actor": dense(a, s["hidden"], 2, 0.01), "critic": dense(c, s["hidden"], 1, 1.0)}
        return params, adam.init(params), jax.vmap(begin)(jax.random.split(e, n)), jnp.zeros(n, jnp.int32), key

    def one_step(params: Any, carry: Any, _: Any) -> Any:
        state, age, key = carry
        key, draw, again = jax.random.split(key, 3)
        logp = jax.nn.log_softmax(forward(params["actor"], state))
        action = jax.random.categorical(draw, logp)
        value = forward(params["critic"], state)[:, 0]
        after, age, done = jax.vmap(step_env)(jax.random.split(again, n), state, age, action)
        taken = jnp.take_along_axis(logp, action[:, None], axis=1)[:, 0]
        return (after, age, key), (state, action, taken, value, done)

    def gae(carry: Any, row: Any) -> Any:
        running, following = carry
        value, done = row
        goes_on = 1.0 - done
        error = 1.0 + s["gamma"] * following * goes_on - value  # every step's reward is 1
        running = error + s["gamma"] * s["lam"] * goes_on * running
        return (running, value), running

    def update(i: Any, carry: Any) -> Any:
        params, moments, state, age, key = carry
        first = moments[1][0].count // (s["epochs"] * minibatches)
        clip = s["clip"] * (1 - first / updates) if s["anneal_clip"] else s["clip"]
        (state, age, key), rows = jax.lax.scan(partial(one_step, params), (state, age, key), None, t_max)
        obs, action, taken, value, done = rows
        after = forward(params["critic"], state)[:, 0]
        _, adv = jax.lax.scan(gae, (jnp.zeros(n), after), (value, done), reverse=True)
        flat = [x.reshape((n * t_max, *x.shape[2:])) for x in (obs, action, taken, adv, adv + value, value)]

        def epoch(carry: Any, draw: Any) -> Any:
            order = jax.random.permutation(draw, n * t_max)[: minibatches * batch]
            pieces = [x[order].reshape((minibatches, batch, *x.shape[1:])) for x in flat]

            def minibatch(carry: Any, piece: Any) -> Any:
                params, moments = carry
                change, moments = adam.update(jax.grad(loss)(params, piece, s, clip), moments, params)
                return (optax.apply_updates(params, change), moments), None

            return jax.lax.scan(minibatch, carry, pieces)[0], None

        key, draw = jax.random.split(key)
        (params, moments), _ = jax.lax.scan(epoch, (params, moments), jax.random.split(draw, s["epochs"]))
        return params, moments, state, age, key

    run = jax.jit(lambda carry, count: jax.lax.fori_loop(0, count, update, carry), donate_argnums=0)
    return start, run


def train(job: dict[str, Any]) -> dict[str, Any]:
    """Trains, with a return to Python for validations alone."""
    s = job["settings"]
    rollout = s["envs"] * s["steps"]
    updates = job["budget"] // rollout
    start, compiled = program(s, updates)
    carry = start(jax.random.key(job["seed"]))
    act = jax.jit(lambda params, obs: forward(params["actor"], obs).argmax(axis=1))
    plays: list[Any] = [carry[0]]

    def episodes(n: int, first: int) -> list[float]:
        return play.episodes(lambda obs: np.asarray(act(plays[0], obs)), job["env"], n, first)

    run = play.Run(job, episodes, lambda: jax.tree.map(np.asarray, plays[0]), lambda kept: plays.__setitem__(0, kept))
    step = 0
    while step < job["budget"]:
        run.update_begins(step)
        # To the next validation, the start of the clock or the end, whatever comes first.
        until = min((step // job["eval_every"] + 1) * job["eval_every"], job["budget"])
        count = max(1, -(-(until - step) // rollout))
        if step < job["clock_from"]:
            count = min(count, (job["clock_from"] - step) // rollout)
        carry = jax.block_until_ready(compiled(carry, count))
        plays[0] = carry[0]
        step += count * rollout
        run.stepped(step)
    return run.finish(step)
