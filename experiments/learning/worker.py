"""Measures one row in a process of its own: ``worker.py JOB ROW`` reads JOB and writes ROW, both JSON."""

from __future__ import annotations

import importlib
import json
import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import networks
import problems

# One thread for everybody. These must stand before the libraries are loaded.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "GOMAXPROCS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
    "CUDA_VISIBLE_DEVICES": "",
}
LIBRARIES = ("torch", "jax", "gymnasium", "stable-baselines3", "sb3-contrib", "sbx-rl", "numpy")


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """What job's implementation says."""
    modules = {problems.OURS: "ours", problems.CLEANRL: "onefile", problems.JAX: "jaxppo", problems.BRIDGE: "bridged"}
    if job["kind"] == "networks":
        return networks.measure(job)
    module = importlib.import_module(modules.get(job["implementation"], "libraries"))
    found: dict[str, Any] = module.train(job)
    return found


def versions() -> dict[str, str]:
    """Those of Python and of the libraries that are installed."""
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def main(argv: list[str]) -> None:
    job = json.loads(Path(argv[0]).read_text())
    os.environ.update(ONE_THREAD)
    if "bridge" in job["implementation"]:  # the server beside it may have what is left of the machine
        del os.environ["GOMAXPROCS"]
    # No variable bounds all threads of JAX.
    if job["implementation"] in (problems.JAX, problems.SBX) and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    row = {"job": job, "load": os.getloadavg()[0], "result": measure(job), "versions": versions()}
    row["load_after"] = os.getloadavg()[0]
    target = Path(argv[1])
    aside = target.with_suffix(".part")
    aside.write_text(json.dumps(row))
    aside.replace(target)


if __name__ == "__main__":
    main(sys.argv[1:])
