"""Our agents: gymctl train, with the settings of a problem laid over a preset."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import tempfile
from pathlib import Path
from typing import Any


def changes(job: dict[str, Any]) -> dict[str, Any]:
    """The keys of our configuration that say what job says."""
    s = job["settings"]
    train = {"train.steps": job["budget"], "train.eval_every": job["eval_every"], "train.checkpoint_every": 0}
    judge = {"eval.validation": job["validation"], "eval.episodes": job["episodes"]}
    if job["algorithm"] == "ppo":
        agent = {
            "train.envs": s["envs"], "ppo.steps": s["steps"], "ppo.batch": s["batch"], "ppo.epochs": s["epochs"],
            "ppo.lr": s["lr"], "ppo.anneal_lr": s["anneal_lr"], "ppo.gamma": s["gamma"], "ppo.lambda": s["lam"],
            "ppo.clip": s["clip"], "ppo.anneal_clip": s["anneal_clip"], "ppo.clip_value": s["clip_value"],
            "ppo.ent_coef": s["ent"], "ppo.vf_coef": 0.5 if s["clip_value"] else 1,  # of half the squared error
            "ppo.norm_obs": s["normalize"],
            "ppo.reward_scale": s["normalize"] or s["scale"], "ppo.clip_reward": 10 if s["normalize"] else 0,
        }  # fmt: skip
    else:
        agent = {
            "train.envs": s["envs"], "ddqn.lr": s["lr"], "ddqn.batch": s["batch"], "ddqn.buffer": s["buffer"],
            "ddqn.learning_starts": s["starts"], "ddqn.gamma": s["gamma"], "ddqn.target_every": s["target_every"],
            "ddqn.train_every": s["train_every"], "ddqn.gradient_steps": s["gradient_steps"],
            "ddqn.eps_end": s["eps_end"], "ddqn.eps_share": s["eps_share"], "ddqn.huber": 1 if s["huber"] else 0,
            "ddqn.max_grad_norm": s["max_grad_norm"], "ddqn.double": s["double"],
            "ddqn.duelling": False, "ddqn.prioritized": False, "ddqn.n_step": 1,
            "ddqn.reward_scale": False,
        }  # fmt: skip
    if s["hidden"]:
        agent[job["algorithm"].replace("dqn", "ddqn") + ".network.hidden"] = s["hidden"]
    if job["world"]:
        agent |= {k if k.startswith("trace.") else f"env.{k}": v for k, v in job["world"].items()}
        agent |= {"env.relative": "", "agent": job["algorithm"].replace("dqn", "ddqn")}
        judge = {}
    return agent | train | judge


def flags(values: dict[str, Any]) -> list[str]:
    """--set for each of values."""
    return [word for key, value in values.items() for word in ("--set", f"{key}={json.dumps(value)}")]


def gymctl(*words: str) -> Any:
    """The JSON document that a command prints."""
    out = subprocess.run(
        [os.environ["CLUSTERGYM_GYMCTL"], *words, "--json"], capture_output=True, text=True, check=False
    )
    if out.returncode != 0:
        raise RuntimeError(f"gymctl {words[0]}: {out.stderr.strip().splitlines()[-1]}")
    return json.loads(out.stdout)


def children() -> float:
    """Processor time of all programs that have been run, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def lines(run: Path) -> list[dict[str, Any]]:
    """The records of a run."""
    return [json.loads(line) for line in (run / "progress.jsonl").read_text().splitlines()]


def train(job: dict[str, Any]) -> dict[str, Any]:
    """Trains twice: with validations, for what it learns, and without any, for how fast it learns it.

    Both runs take the same steps and end with the same parameters. The clock of the second one is read as everyone's, from
    job's step ``clock_from`` on.
    """
    with tempfile.TemporaryDirectory() as folder:
        learnt, timed = Path(folder) / "learnt", Path(folder) / "timed"
        common = ["-c", job["preset"], "--seed", str(job["seed"]), "--workers", "1"]
        result = {} if job["world"] else gymctl("train", *common, "--run-dir", str(learnt), *flags(changes(job)))
        quiet = changes(job) | {"train.eval_every": 0, "train.log_every": job["clock_from"]}
        before = children()
        gymctl("train", *common, "--no-eval", "--run-dir", str(timed), *flags(quiet))
        processor, before = children() - before, children()
        # What a run takes that ends where the clock starts is start-up.
        quiet |= {"train.steps": job["clock_from"]}
        gymctl("train", *common, "--no-eval", "--run-dir", str(Path(folder) / "begun"), *flags(quiet))
        processor -= children() - before
        records = [r for r in lines(timed) if "timing" in r]
        steps = records[-1]["step"] - records[0]["step"]
        seconds = records[-1]["timing"]["wall_s"] - records[0]["timing"]["wall_s"]
        clock = {
            "steps": records[-1]["step"],
            "timed_steps": steps,
            "seconds": seconds,
            "processor_s": max(processor, 1e-3),
            "startup_s": records[0]["timing"]["wall_s"],
            "kernels": records[-1]["kernels"],
        }
        if job["world"]:
            return clock | {"training_return": records[-1]["return_mean"]}
        if clock["steps"] != result["step"]:
            raise RuntimeError(f"the run without validations took {clock['steps']} steps, want {result['step']}")
        validations = [(r["step"], r["eval"]["return_mean"]) for r in lines(learnt) if "eval" in r]
        best_step = int(Path(result["checkpoint"]).name)
        best = result["eval"]["policies"][0]["return"]["per_episode"]
        last = best
        if best_step != result["step"]:
            dir = learnt / "checkpoints" / str(result["step"])
            words = ["--checkpoint", str(dir), "--workers", "1", "--episodes", str(job["episodes"])]
            last = gymctl("eval", *words)["policies"][0]["return"]["per_episode"]
    return clock | {"validations": validations, "best_step": best_step, "best": best, "last": last}
