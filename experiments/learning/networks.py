"""Networks alone: a training step, a forward pass of one observation, and square products, on one thread.

Ours come from the project's own benchmarks, which ``compare.py`` builds; PyTorch's are below, at its best: fused Adam,
gradients dropped instead of zeroed, inference mode, and of two layouts of images the faster one. The shortest run of
each counts, in microseconds: what the work costs when nobody else is at it.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

PYTORCH = "PyTorch"
SETS = ("avx512", "avx2", "portable")
SIZES = (64, 128, 256, 512, 1024)


@dataclass(frozen=True)
class Attention:
    """Two layers of a transformer over a table of rows of 16 numbers, of which the first ones are filled, and one token of 8
    other numbers; then the first token and the mean of the filled ones."""

    rows: int
    filled: int
    width: int
    heads: int
    feed: int


@dataclass(frozen=True)
class Case:
    """One network, and what ours is to cost at most, in PyTorch's time."""

    name: str
    input: tuple[int, ...]
    hidden: tuple[int, ...]
    outputs: int
    batch: int
    step_mark: float
    forward_mark: float
    attention: Attention | None = None


def attention(rows: int, filled: int, width: int, heads: int, feed: int, batch: int) -> Case:
    """A transformer, named as in our benchmarks."""
    a = Attention(rows, filled, width, heads, feed)
    return Case(f"attention {rows}x16-{width} filled {filled}", (), (), 8, batch, 0.8, 0.8, a)


CASES = (
    Case("mlp 128-64-64-8", (128,), (64, 64), 8, 64, 0.2, 0.15),
    Case("mlp 256-256-256-16", (256,), (256, 256), 16, 256, 0.8, 0.15),
    Case("mlp 4-64-64-2", (4,), (64, 64), 2, 64, 0.2, 0.15),
    Case("cnn 1x32x64", (1, 32, 64), (64,), 8, 32, 0.6, 0.3),
    Case("cnn 3x64x64", (3, 64, 64), (64,), 8, 64, 0.6, 0.3),
    attention(32, 32, 64, 4, 128, 64),
    attention(32, 8, 64, 4, 128, 64),
    attention(64, 64, 128, 8, 512, 8),
)


def job(implementation: str, round_: int, quick: bool) -> dict[str, Any]:
    """What a worker needs to know."""
    return {"kind": "networks", "implementation": implementation, "round": round_, "seconds": 0.1 if quick else 0.5}


def measure(job: dict[str, Any]) -> dict[str, float]:
    """Microseconds by "step/NAME" and "forward/NAME", GFLOP/s by "product/SIZE" and "peak"."""
    if job["implementation"] == PYTORCH:
        return pytorch(job["seconds"])
    return ours(job["implementation"].split()[-1], job["seconds"])


def shortest(seconds: float, f: Callable[[], object]) -> float:
    """The shortest of the runs of f that fit into so many seconds, 20 at least, in seconds.

    Other programs interrupt a run of more than a millisecond, so of these the time of the processor counts.
    """
    best, began, n = float("inf"), time.perf_counter(), 0
    while n < 20 or time.perf_counter() - began < seconds:
        at, used = time.perf_counter(), time.process_time()
        f()
        took, used = time.perf_counter() - at, time.process_time() - used
        best = min(best, used if took > 1e-3 else took)
        n += 1
    return best


def pytorch(seconds: float) -> dict[str, float]:
    import torch
    from torch import nn

    torch.set_num_threads(1)
    found: dict[str, float] = {}

    def least(key: str, seconds_taken: float) -> None:
        found[key] = min(found.get(key, float("inf")), seconds_taken * 1e6)

    for c in CASES:
        if c.attention:
            net, inputs = transformer(nn, torch, c, c.attention)
            y, adam = torch.randn(c.batch, c.outputs), torch.optim.Adam(net.parameters(), lr=1e-4, fused=True)

            def learn(net: Any = net, inputs: Any = inputs, y: Any = y, adam: Any = adam) -> None:
                adam.zero_grad(set_to_none=True)
                nn.functional.mse_loss(net(*inputs), y).backward()
                adam.step()

            least(f"step/{c.name}", shortest(seconds, learn))
            one = [x if x is None else x[:1].clone() for x in inputs]
            for mode in (False, True):  # its fused inference is not always the faster one
                net.train(mode)
                with torch.inference_mode():
                    least(f"forward/{c.name}", shortest(seconds, partial(net, *one)))
            continue
        image = len(c.input) == 3
        for layout in (torch.contiguous_format, torch.channels_last) if image else (torch.contiguous_format,):
            net = network(nn, c)
            x, y = torch.randn(c.batch, *c.input), torch.randn(c.batch, c.outputs)
            if image:
                net, x = net.to(memory_format=layout), x.to(memory_format=layout)
            adam = torch.optim.Adam(net.parameters(), lr=1e-4, fused=True)

            def step(net: Any = net, x: Any = x, y: Any = y, adam: Any = adam) -> None:
                adam.zero_grad(set_to_none=True)
                nn.functional.mse_loss(net(x), y).backward()
                adam.step()

            least(f"step/{c.name}", shortest(seconds, step))
            one = x[:1].clone(memory_format=layout) if image else x[:1].clone()
            with torch.inference_mode():
                least(f"forward/{c.name}", shortest(seconds, partial(net, one)))
    with torch.inference_mode():
        for n in SIZES:
            a, b, out = torch.randn(n, n), torch.randn(n, n), torch.empty(n, n)
            some = max(1, 200_000 // n**2)  # several products where one is too short for the clock

            def products(a: Any = a, b: Any = b, out: Any = out, some: int = some) -> None:
                for _ in range(some):
                    torch.mm(a, b, out=out)

            found[f"product/{n}"] = 2 * n**3 * some / shortest(seconds, products) / 1e9
    return found


def transformer(nn: Any, torch: Any, c: Case, a: Attention) -> tuple[Any, list[Any]]:
    """c in PyTorch, with inputs. Empty rows are masked; without any there is no mask, which is faster."""

    class Transformer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.other, self.rows = nn.Linear(8, a.width), nn.Linear(16, a.width)
            layer = nn.TransformerEncoderLayer(a.width, a.heads, a.feed, dropout=0.0, batch_first=True, norm_first=True)
            self.layers = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(a.width), enable_nested_tensor=False)
            self.out = nn.Linear(2 * a.width, c.outputs)

        def forward(self, other: Any, rows: Any, empty: Any) -> Any:
            x = self.layers(torch.cat([self.other(other)[:, None], self.rows(rows)], 1), src_key_padding_mask=empty)
            if empty is None:
                mean = x.mean(1)
            else:
                live = (~empty)[:, :, None].float()
                mean = (x * live).sum(1) / live.sum(1)
            return self.out(torch.cat([x[:, 0], mean], 1))

    rows, empty = torch.randn(c.batch, a.rows, 16), None
    if a.filled < a.rows:
        empty = torch.zeros(c.batch, a.rows + 1, dtype=torch.bool)
        empty[:, 1 + a.filled :] = True
    return Transformer(), [torch.randn(c.batch, 8), rows, empty]


def network(nn: Any, c: Case) -> Any:
    """c in PyTorch."""
    layers: list[Any] = []
    width = c.input[0]
    if len(c.input) == 3:
        for filters in (16, 32):
            layers += [nn.Conv2d(width, filters, 3, 2, 1), nn.ReLU()]
            width = filters
        layers.append(nn.Flatten())
        width *= c.input[1] * c.input[2] // 16
    for units in c.hidden:
        layers += [nn.Linear(width, units), nn.ReLU()]
        width = units
    return nn.Sequential(*layers, nn.Linear(width, c.outputs))


LINE = re.compile(r"^Benchmark(\w+)/(\S+?)(?:-\d+)?\s+\d+\s+(.*)$", re.MULTILINE)


def ours(kernels: str, seconds: float) -> dict[str, float]:
    """Runs the benchmarks that compare.py built, with one set of kernels."""
    found: dict[str, float] = {}
    squares = "NN/^(" + "|".join(f"m{n}-n{n}-k{n}" for n in SIZES) + ")$"
    for program, pattern in (
        ("model", "Regression/step|Regression/forward/.*_batch_1$"),
        ("kernel", f"MatMul/{squares}"),
        ("kernel", "Peak"),
    ):
        out = run(program, pattern, kernels, seconds)
        for kind, what, numbers in LINE.findall(out):
            units = numbers.split()
            value = dict(zip(units[1::2], map(float, units[::2])))
            if kind == "Regression":
                part, case = what.split("/")
                case, _, batch = case.replace("_", " ").rpartition(" batch ")
                if part == "step" or batch == "1":
                    found[f"{part}/{case}"] = value["best-µs"]
            elif kind == "MatMul":
                found["product/" + what.rpartition("k")[2]] = value["GFLOP/s"]
            elif what == kernels:
                found["peak"] = value["GFLOP/s"]
    if not found:
        raise RuntimeError(f"the benchmarks printed no result for kernels {kernels}")
    return found


def run(program: str, pattern: str, kernels: str, seconds: float) -> str:
    """What a test program's benchmarks print."""
    path = os.path.join(os.environ["CLUSTERGYM_BENCHES"], f"{program}.test")
    words = [path, "-test.run", "^$", "-test.bench", pattern, "-test.benchtime", f"{seconds}s", "-kernels", kernels]
    out = subprocess.run(words, capture_output=True, text=True, check=False)
    if out.returncode != 0:
        raise RuntimeError(f"{program}.test: {(out.stderr or out.stdout).strip().splitlines()[-1]}")
    return out.stdout
