"""Trains our agents and those of well-known libraries on the same problems, and prints one table.

    ./run.sh --quick              a look at everything in a few minutes
    ./run.sh --only cartpole-ppo  one problem
    ./run.sh --seeds 5            all of it

Rows that were measured are kept in the output folder, and the next run goes on from there; Ctrl-C loses the one under
way. run.sh brings Python and libraries along; with libraries of your own, python3 compare.py does the same.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import networks
import problems
from rows import Job, Row, Store

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
NETWORKS = "networks"
# What each implementation cannot do without.
NEEDS = {
    problems.CLEANRL: ("torch", "gymnasium"),
    problems.SB3: ("torch", "gymnasium", "stable_baselines3"),
    problems.SBX: ("gymnasium", "stable_baselines3", "sbx"),
    problems.JAX: ("gymnasium", "jax", "optax"),
    problems.MASKABLE: ("torch", "gymnasium", "sb3_contrib", "msgpack"),
    problems.BRIDGE: ("torch", "gymnasium", "msgpack"),
    networks.PYTORCH: ("torch",),
}
LIMIT = 4 * 3600  # seconds that one row may take


class Parser(argparse.ArgumentParser):
    """Says in one sentence what is wrong."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"compare.py: {message}; see compare.py --help\n")


def whole(low: int, high: int) -> Any:
    """The argument type of whole numbers from low to high."""

    def parse(word: str) -> int:
        if not word.isdecimal() or not low <= int(word) <= high:
            raise argparse.ArgumentTypeError(f"got {word!r}, want a whole number from {low} to {high}")
        return int(word)

    return parse


def names(word: str) -> list[str]:
    """The argument type of --only."""
    known = [p.name for p in problems.ALL] + [NETWORKS]
    chosen = [w.strip() for w in word.split(",")]
    for w in chosen:
        if w not in known:
            raise argparse.ArgumentTypeError(f"got {w!r}, want some of {','.join(known)}")
    return chosen


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = Parser(prog="compare.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--quick", action="store_true", help="small budgets and one seed, a few minutes: for a look, not for a verdict"
    )
    parser.add_argument("--only", type=names, metavar="NAME[,NAME]", help="these problems, or networks")
    parser.add_argument(
        "--seeds", type=whole(1, 100), metavar="N", help="train N times, seeds 1 to N (default 3, 1 with --quick)"
    )
    parser.add_argument(
        "--rounds", type=whole(1, 100), metavar="N", help="measure networks N times in turn (default 3, 1 with --quick)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder of the rows (default runs/learning, runs/learning-quick with --quick)",
    )
    parser.add_argument("--table", action="store_true", help="measure nothing, print the table of what is there")
    parser.add_argument("--gymctl", type=Path, metavar="FILE", help="the program to measure (default: built here)")
    args = parser.parse_args(argv)
    args.seeds = args.seeds or (1 if args.quick else 3)
    args.rounds = args.rounds or (1 if args.quick else 3)
    args.out = args.out or ROOT / "runs" / ("learning-quick" if args.quick else "learning")
    if args.out.exists() and not args.out.is_dir():
        parser.error(f"argument --out: got {str(args.out)!r}, want a folder")
    if args.gymctl and not args.gymctl.is_file():
        parser.error(f"argument --gymctl: got {str(args.gymctl)!r}, want a file that is there")
    return args


def plan(args: argparse.Namespace) -> Iterator[Job]:
    """What is to be measured, in order: all sides of a seed or a round one after the other, so that they share its weather."""
    if not args.only or NETWORKS in args.only:
        for round_ in range(1, args.rounds + 1):
            for who in (networks.PYTORCH, *(f"ours, {s}" for s in networks.SETS)):
                yield networks.job(who, round_, args.quick)
    for seed in range(1, args.seeds + 1):
        for p in problems.ALL:
            if p.name in args.only if args.only else p.quick_budget or not args.quick:
                for who in p.implementations:
                    yield p.job(who, seed, args.quick and p.quick_budget > 0)


def missing(job: Job) -> list[str]:
    """The Python packages that job needs and that are not there."""
    return [m for m in NEEDS.get(job["implementation"], ()) if importlib.util.find_spec(m) is None]


def build(folder: Path, gymctl: Path | None, benches: bool) -> dict[str, str]:
    """Builds what workers run, and says where as environment variables."""
    folder.mkdir(parents=True, exist_ok=True)
    program = gymctl or folder / "gymctl"
    commands = [] if gymctl else [["go", "build", "-o", str(program), "./cmd/gymctl"]]
    if benches:
        commands += [["go", "test", "-c", "-o", str(folder / f"{p}.test"), f"./nets/{p}"] for p in ("model", "kernel")]
    for words in commands:
        if subprocess.run(words, cwd=ROOT, check=False).returncode != 0:
            raise SystemExit(f"compare.py: {' '.join(words)} failed")
    return {"CLUSTERGYM_GYMCTL": str(program.resolve()), "CLUSTERGYM_BENCHES": str(folder.resolve())}


def work(job: Job, store: Store, env: dict[str, str]) -> str:
    """Measures one row in a worker of its own; returns what went wrong, "" where nothing did."""
    with tempfile.TemporaryDirectory() as folder, store.log(job).open("w") as log:
        order = Path(folder) / "job.json"
        order.write_text(json.dumps(job))
        words = [sys.executable, str(HERE / "worker.py"), str(order), str(store.path(job))]
        # A session of its own: Ctrl-C reaches this program alone, which ends the worker and whatever that started.
        p = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=env, start_new_session=True)
        try:
            code = p.wait(LIMIT)
        except subprocess.TimeoutExpired:
            return f"took more than {LIMIT} s"
        finally:
            end(p)
    if code == 0:
        return ""
    said = [line for line in store.log(job).read_text().splitlines() if line.strip()]
    return said[-1] if said else f"ended with code {code}"


def end(p: subprocess.Popen[bytes]) -> None:
    """Ends p and its children, if it is still there."""
    if p.poll() is None:
        os.killpg(p.pid, signal.SIGTERM)
        try:
            p.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            p.wait()


def summary(row: Row) -> str:
    """A row in a few words."""
    import report  # which needs numpy: --help does not

    r = row["result"]
    if row["job"]["kind"] == "networks":
        return f"{len(r)} measurements"
    if "best" not in r:
        earned = (
            "no episode ended" if r["training_return"] is None else f"return in training {r['training_return']:.1f}"
        )
        return f"{report.rate(row):,.0f} steps/s, {earned}"
    mean = sum(r["best"]) / len(r["best"]), sum(r["last"]) / len(r["last"])
    return f"{report.rate(row):,.0f} steps/s, return {mean[0]:.1f} best, {mean[1]:.1f} last"


def measure(jobs: list[Job], store: Store, env: dict[str, str]) -> int:
    """Measures what is not there yet; returns how many could not be measured."""
    failed, left_out = 0, set()
    for i, job in enumerate(jobs, 1):
        what = f"{job.get('problem', NETWORKS)}: {job['implementation']}"
        words = f"[{i}/{len(jobs)}] {what}, " + (f"seed {job['seed']}" if "seed" in job else f"round {job['round']}")
        if lacks := missing(job):
            if what not in left_out:
                print(f"{words}: left out, {' and '.join(lacks)} not installed", flush=True)
            left_out.add(what)
            continue
        row = store.find(job)
        if row:
            print(f"{words}: {summary(row)} (measured before)", flush=True)
            continue
        print(f"{words} …", end=" ", flush=True)
        at = time.monotonic()
        fault = work(job, store, env)
        row = None if fault else store.find(job)
        if row is None:
            failed += 1
            print(f"failed: {fault or 'the worker wrote no row'} (all of it in {store.log(job)})", flush=True)
            continue
        print(f"{summary(row)} ({time.monotonic() - at:.0f} s)", flush=True)
    return failed


def stop(*_: object) -> NoReturn:
    """Takes SIGTERM for Ctrl-C."""
    raise KeyboardInterrupt


def main(argv: list[str] | None = None) -> int:
    args = parse(argv)
    signal.signal(signal.SIGTERM, stop)
    store, jobs = Store(args.out), list(plan(args))
    failed, interrupted = 0, False
    if not args.table:
        if not args.gymctl and not shutil.which("go"):
            raise SystemExit("compare.py: go is not on the PATH; it builds the program to measure")
        store.open()
        env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
        try:
            env |= build(args.out / "bin", args.gymctl, any(j["kind"] == NETWORKS for j in jobs))
            env["PYTHONPATH"] = os.pathsep.join([str(ROOT / "python" / "src"), env.get("PYTHONPATH", "")]).rstrip(
                os.pathsep
            )
            failed = measure(jobs, store, env)
        except KeyboardInterrupt:
            interrupted = True
            print("\ninterrupted; the same command goes on from here", flush=True)
    rows = [row for job in jobs if (row := store.find(job))]
    if rows:
        import report

        print("\n" + report.write(args.out, rows))
        print(f"\nresults.json, results.csv, networks.csv and table.txt are in {args.out}")
    else:
        print(f"nothing was measured yet in {args.out}")
    return 130 if interrupted else 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
