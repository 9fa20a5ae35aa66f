"""Records trajectories of Gymnasium's classic control for gymnasium_test.go:  python record.py [folder]

Needs gymnasium and mpmath. Each environment is recorded twice from the same starts with the same actions: as
installed, and with sine, cosine and squares replaced by correctly rounded ones. The second recording is the same
on every machine; the first depends on the C library, and a recording made elsewhere may differ in a few places.

Numbers are hexadecimal bits, most significant first: 16 digits for a float64 of the state, 8 for a float32 of the
observation. Row 0 is the start. State is that of the environment as installed; exact holds the rows in which the
correctly rounded one differs.
"""

import ast
import inspect
import json
import math
import platform
import struct
import sys
import types
from fractions import Fraction

import gymnasium
import mpmath
import numpy as np
from gymnasium.envs.classic_control import acrobot, cartpole, mountain_car

mpmath.mp.prec = 300


def rounded(name):
    def f(x):
        sign, mantissa, exponent, _ = getattr(mpmath, name)(mpmath.mpf(float(x)))._mpf_
        value = Fraction(int(mantissa)) * Fraction(2) ** exponent
        return np.float64(-value if sign else value)  # a Fraction converts to the nearest float64

    return f


class Squares(ast.NodeTransformer):
    """x ** 2, for which NumPy's scalars call the C library's pow, becomes np.square(x), which multiplies."""

    def visit_BinOp(self, node):
        self.generic_visit(node)
        if isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant) and node.right.value == 2:
            call = ast.Call(ast.Name("square_", ast.Load()), [node.left], [])
            return ast.copy_location(call, node)
        return node


def exact(module):
    """A copy of a module of Gymnasium's whose sine, cosine and squares are correctly rounded."""
    tree = ast.fix_missing_locations(Squares().visit(ast.parse(inspect.getsource(module))))
    copy = types.ModuleType(module.__name__ + "_exact")
    copy.__dict__["square_"] = np.square
    exec(compile(tree, copy.__name__, "exec"), copy.__dict__)
    sin, cos = rounded("sin"), rounded("cos")
    for library in ("np", "math"):
        if library in copy.__dict__:
            names = dict(copy.__dict__[library].__dict__, sin=sin, cos=cos)
            copy.__dict__[library] = types.SimpleNamespace(**names)
    if "sin" in copy.__dict__:
        copy.__dict__.update(sin=sin, cos=cos)
    return copy


def bits(values, kind):
    return "".join(struct.pack(">" + kind, float(v)).hex() for v in values)


def play(env, start, limit, choose):
    """One episode from a start, which is that of a seed where it is a number."""
    if isinstance(start, int):
        obs, _ = env.reset(seed=start)
    else:
        env.reset(seed=0)
        env.state = np.array(start, dtype=np.float64)
        obs = np.array(start, dtype=np.float32)
    out = {"start": start, "actions": "", "state": [bits(env.state, "d")], "obs": [bits(obs, "f")], "rewards": ""}
    terminated = False
    while not terminated and len(out["actions"]) < limit:
        action = choose(len(out["actions"]), env.state)
        obs, reward, terminated, _, _ = env.step(action)
        assert reward in (-1, 0, 1)
        out["actions"] += str(action)
        out["rewards"] += {-1: "-", 0: "0", 1: "+"}[int(reward)]
        out["state"].append(bits(env.state, "d"))
        out["obs"].append(bits(obs, "f"))
    out["terminated"] = terminated
    return out


def replay(env, recorded):
    """The same start and actions. Another rounding may end the episode elsewhere."""
    actions = recorded["actions"]
    return play(env, recorded["start"], len(actions), lambda t, state: int(actions[t]))


def uniform(seed, n):
    draws = np.random.default_rng(seed)
    return lambda t, state: int(draws.integers(n))


def mostly(seed, n, share, good):
    """A policy that plays at random now and then, so that it sees more of the world."""
    draws = np.random.default_rng(seed)
    return lambda t, state: int(draws.integers(n)) if draws.random() > share else good(state)


def balance(state):
    return int(state[2] + 0.5 * state[3] > 0)


def swing(state):
    return 2 if state[1] >= 0 else 0


def pump(state):
    return 2 if state[3] >= 0 else 0


PLANS = {
    "cartpole": (cartpole, "CartPoleEnv", 500, [
        ([0.0273956, -0.0061122, 0.0358598, 0.0197368], lambda t, state: [1, 1, 0, 1, 0][t], 5),
        (1, mostly(1, 2, 0.9, balance), 500),
        (2, uniform(2, 2), 500),
        (3, uniform(3, 2), 500),
        (4, lambda t, state: 1, 500),
        (5, mostly(5, 2, 0.6, balance), 500),
    ]),
    "mountaincar": (mountain_car, "MountainCarEnv", 200, [
        (1, lambda t, state: swing(state), 200),
        (2, uniform(2, 3), 200),
        (3, lambda t, state: 0, 200),
        (4, mostly(4, 3, 0.9, swing), 200),
        ([-1.19, -0.03], lambda t, state: 2 if t > 3 else 0, 200),
    ]),
    "acrobot": (acrobot, "AcrobotEnv", 500, [
        (1, lambda t, state: pump(state), 500),
        (2, uniform(2, 3), 500),
        (3, mostly(3, 3, 0.8, pump), 500),
    ]),
}


def main(folder):
    for name, (module, kind, limit, plans) in PLANS.items():
        stock = getattr(module, kind)()
        own = getattr(exact(module), kind)()
        episodes = []
        for start, choose, steps in plans:
            recorded = play(stock, start, min(limit, steps), choose)
            rerun = replay(own, recorded)
            # The last bits of the state differ now and then; observations must not, or the recording is no use.
            recorded["exact"] = {i: y for i, (x, y) in enumerate(zip(recorded["state"], rerun["state"])) if x != y}
            for key in "actions", "obs", "rewards", "terminated":
                assert recorded[key] == rerun[key], (name, start, key)
            episodes.append(recorded)
            print(name, start, len(recorded["actions"]), "steps; states differ in", len(recorded["exact"]))
        document = {
            "made_with": f"gymnasium {gymnasium.__version__}, numpy {np.__version__}, python {platform.python_version()}, "
            + " ".join(platform.libc_ver()) + f", {platform.machine()}",
            "episodes": episodes,
        }
        with open(f"{folder}/{name}.json", "w") as f:
            json.dump(document, f, indent=0)
            f.write("\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ".")
