"""Traces and clusters of the user's own, on a server of this process and on one elsewhere."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import clustergym
from clustergym import server as server_module
from clustergym._files import plain, resolve
from clustergym.server import find_gymctl

SMALL: dict[str, Any] = {"window": 8, "warm": 0, "obs": "dict"}
CLUSTER: dict[str, Any] = {"name": "mine", "racks": [{"nodes": [{"count": 2, "gpus": 4}]}]}


def write_jobs(path: Path, work: int = 100, jobs: int = 200) -> Path:
    rows = [f"{60 * i},{work + i % 50},{1 + i % 4}" for i in range(jobs)]
    path.write_text("\n".join(["submit_time,duration,num_gpu", *rows]) + "\n")
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of a user's, in which the program runs."""
    write_jobs(tmp_path / "jobs.csv")
    (tmp_path / "mycluster.yaml").write_text("name: mine\nracks:\n  - nodes:\n      - {count: 2, gpus: 4}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def rooted(folder: Path) -> Iterator[str]:
    with clustergym.LocalServer(("--trace-root", str(folder)), timeout=60) as server:
        yield server.url


def opened(**kwargs: Any) -> tuple[str, str, int]:
    """The hash of the scenario, the description of the workload, and the number of GPUs."""
    env = clustergym.RemoteEnv("JobSelect-v1", **{**SMALL, **kwargs})
    env.reset(seed=1)
    meta = env.handle.meta
    sha = env.handle.spec["scenario_sha"]
    env.close()
    return sha, meta["workload"], meta["gpus"]


def test_every_form_names_the_same_trace_and_cluster(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    want = opened(trace="jobs.csv", cluster="mycluster.yaml")
    assert str(folder / "jobs.csv") in want[1]
    assert want[2] == 8
    link = folder / "link.csv"
    link.symlink_to(folder / "jobs.csv")
    traces: list[Any] = [
        Path("jobs.csv"), folder / "jobs.csv", str(folder / "jobs.csv"), "./jobs.csv", "~/jobs.csv", Path("~/jobs.csv"),
        f"../{folder.name}/jobs.csv", {"file": "jobs.csv"}, {"file": Path("jobs.csv")},
        {"file": "jobs.csv", "sort": True}, "link.csv",
    ]  # fmt: skip
    clusters: list[Any] = ["./mycluster.yaml", Path("mycluster.yaml"), folder / "mycluster.yaml", CLUSTER]
    for trace in traces:
        assert opened(trace=trace, cluster="mycluster.yaml")[0] == want[0], trace
    for cluster in clusters:
        assert opened(trace="jobs.csv", cluster=cluster)[0] == want[0], cluster
    assert opened(kwargs={"trace.file": "jobs.csv", "cluster": CLUSTER})[0] == want[0]
    assert opened(trace="jobs.csv", cluster="2x4")[0] != want[0]


def test_a_model_is_named_like_a_trace(folder: Path, rooted: str) -> None:
    program = find_gymctl()
    write_jobs(folder / "jobs.csv", jobs=1000)
    subprocess.run(
        [program, "predict", "fit", "jobs.csv", "--until", "0.6", "-o", "m.bin"],
        check=True,
        capture_output=True,
        timeout=60,
    )
    want = opened(trace="jobs.csv", cluster="2x4", estimates="gbdt:m.bin")
    assert opened(trace="jobs.csv", cluster="2x4", estimates=f"gbdt:{folder}/m.bin")[0] == want[0]
    assert opened(url=rooted, trace="jobs.csv", cluster="2x4", estimates="gbdt:m.bin")[0] == want[0]
    assert opened(trace="jobs.csv", cluster="2x4", estimates="gbdt")[0] != want[0]
    with pytest.raises(clustergym.BadKwargs, match=r"estimates: .*m.bin' is a path of this machine"):
        opened(url=rooted, trace="jobs.csv", cluster="2x4", estimates=f"gbdt:{folder}/m.bin")
    with pytest.raises(clustergym.BadKwargs, match=r"model .*jobs.csv: it is no model of gymctl predict fit"):
        opened(trace="jobs.csv", cluster="2x4", estimates="gbdt:jobs.csv")


def test_gymnasium_makes_them(folder: Path) -> None:
    env = gymnasium.make("clustergym/JobSelect-v1", trace="jobs.csv", cluster="mycluster.yaml", **SMALL)
    envs = gymnasium.make_vec(
        "clustergym/JobSelect-v1", num_envs=3, trace={"file": Path("jobs.csv")}, cluster=CLUSTER, **SMALL
    )
    first = env.reset(seed=5)[0]
    all_of_them = envs.reset(seed=5)[0]
    for key, value in first.items():
        np.testing.assert_array_equal(value, all_of_them[key][0])
    spec = env.spec
    assert spec is not None
    assert json.loads(spec.to_json())["kwargs"]["trace"] == {"file": str(folder / "jobs.csv")}
    assert spec.kwargs["cluster"] == str(folder / "mycluster.yaml")
    json.loads(envs.spec.to_json())
    env.close()
    envs.close()


def _start(blob: bytes, where: str, out: Any) -> None:
    os.chdir(where)
    env = pickle.loads(blob)
    if not hasattr(env, "reset"):
        env = env.make()
    obs, _ = env.reset(seed=3)
    out.send({key: value.tolist() for key, value in obs.items()})
    env.close()


def test_pickles_and_specs_work_in_another_folder_and_process(folder: Path, tmp_path_factory: Any) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    bare = clustergym.RemoteEnv("JobSelect-v1", trace=Path("jobs.csv"), cluster="mycluster.yaml", **SMALL)
    made = gymnasium.make("clustergym/JobSelect-v1", trace=Path("jobs.csv"), cluster=Path("mycluster.yaml"), **SMALL)
    want = {key: value.tolist() for key, value in bare.reset(seed=3)[0].items()}
    context = multiprocessing.get_context("spawn")
    for what in (bare, bare.spec, made.spec):
        here, there = context.Pipe(duplex=False)
        child = context.Process(target=_start, args=(pickle.dumps(what), str(elsewhere), there))
        child.start()
        there.close()
        assert here.poll(60)
        assert here.recv() == want
        child.join(60)
    bare.close()
    made.close()


def test_an_edited_file_is_read_anew(folder: Path) -> None:
    jobs, cluster = folder / "jobs.csv", folder / "mycluster.yaml"
    before = opened(trace="jobs.csv", cluster="mycluster.yaml")
    write_jobs(jobs, work=200)
    edited = opened(trace="jobs.csv", cluster="mycluster.yaml")
    assert edited[0] != before[0]
    cluster.write_text(cluster.read_text().replace("gpus: 4", "gpus: 8"))
    assert opened(trace="jobs.csv", cluster="mycluster.yaml")[2] == 16


def test_a_server_that_died_is_started_again_with_the_files(folder: Path) -> None:
    env = clustergym.RemoteEnv("JobSelect-v1", trace="jobs.csv", cluster="mycluster.yaml", **SMALL)
    first = env.reset(seed=2)[0]
    private = server_module._shared
    assert private is not None
    private._process.kill()
    private._process.wait(20)
    os.chdir(folder.parent)
    with pytest.raises(clustergym.ClusterGymError):
        env.step(0)
    again = env.reset(seed=2)[0]
    for key, value in first.items():
        np.testing.assert_array_equal(value, again[key])
    env.close()


@pytest.mark.parametrize(
    ("kwargs", "said"),
    [
        ({"trace": "nowhere.csv"}, ["trace.file", "nowhere.csv", "a file that exists"]),
        ({"trace": "bad.csv"}, ["bad.csv:3: duration", "soon"]),
        ({"trace": "."}, ["trace.file", "ordinary file"]),
        ({"trace": {"file": "jobs.csv", "srot": True}}, ["srot", "did you mean"]),
        ({"trace": {"file": 3}}, ["trace.file", "3"]),
        ({"cluster": "nowhere.yaml"}, ["nowhere.yaml", "no such file"]),
        ({"cluster": "bad.yaml"}, ["bad.yaml:3", "gpu", "did you mean gpus?"]),
        ({"cluster": {"racks": [{"nodes": [{"gpus": -1}]}]}}, ["racks[0].nodes[0].gpus", "-1"]),
        ({"cluster": {"racks": []}}, ["racks", "a list of racks"]),
        ({"cluster": "philly-193"}, ["philly-193", "philly-192"]),
    ],
)
def test_a_mistake_names_the_place(folder: Path, kwargs: dict[str, Any], said: list[str]) -> None:
    (folder / "bad.csv").write_text("submit_time,duration,num_gpu\n0,10,1\n5,soon,1\n")
    (folder / "bad.yaml").write_text("racks:\n  - nodes:\n      - {count: 2, gpu: 4}\n")
    for make in (clustergym.RemoteEnv, clustergym.RemoteVectorEnv):
        with pytest.raises(clustergym.BadKwargs) as caught:
            make("JobSelect-v1", **{**SMALL, **kwargs})
        for words in said:
            assert words in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_server_elsewhere_reads_what_is_below_its_root(rooted: str, folder: Path) -> None:
    sub = folder / "sub"
    sub.mkdir()
    write_jobs(sub / "more.csv")
    for trace in ("jobs.csv", {"file": "jobs.csv"}, Path("sub") / "more.csv", "sub/more.csv"):
        assert "jobs" in opened(url=rooted, trace=trace, cluster=CLUSTER)[1]
    for trace in (
        str(folder / "jobs.csv"),
        "~/jobs.csv",
        folder / "jobs.csv",
        {"file": folder / "jobs.csv"},
        "C:\\jobs.csv",
    ):
        with pytest.raises(clustergym.BadKwargs, match="copy the file below its --trace-root, and name it relative"):
            opened(url=rooted, trace=trace)
    with pytest.raises(clustergym.BadKwargs, match="--trace-root; copy it there"):
        opened(url=rooted, trace="nowhere.csv")
    for cluster in ("mycluster.yaml", folder / "mycluster.yaml", "~/mycluster.yaml"):
        with pytest.raises(clustergym.BadKwargs, match="give it the file's keys"):
            opened(url=rooted, cluster=cluster)


def test_a_server_without_a_root_says_so(url: str, folder: Path) -> None:
    with pytest.raises(clustergym.BadKwargs, match="--trace-root DIR"):
        opened(url=url, trace="jobs.csv")


def test_only_those_who_have_its_token_use_the_private_server(folder: Path) -> None:
    clustergym.RemoteEnv("CartPole-v1").close()
    private = server_module._shared
    assert private is not None
    with pytest.raises(clustergym.Unauthorized):
        clustergym.RemoteEnv("JobSelect-v1", private.url, "another-token-of-16", **SMALL)
    # Even with the token, names are those of a server elsewhere if url= is given.
    with pytest.raises(clustergym.BadKwargs, match="--trace-root"):
        clustergym.RemoteEnv("JobSelect-v1", private.url, private._token, trace=str(folder / "jobs.csv"), **SMALL)


def test_a_long_trace_opens(folder: Path) -> None:
    # It is longer than what a frame to the server may hold, and has more jobs than a server for strangers takes.
    write_jobs(folder / "long.csv", jobs=1_200_000)
    assert (folder / "long.csv").stat().st_size > 16 << 20
    assert "1200000 jobs" in opened(trace="long.csv", cluster=CLUSTER)[1]


def test_names_are_resolved_without_a_server(folder: Path) -> None:
    own = resolve({"trace": "jobs.csv", "cluster": "dally:4x2", "load": 0.9}, True)
    assert own == {"trace": {"file": str(folder / "jobs.csv")}, "cluster": "dally:4x2", "load": 0.9}
    for name in ("philly-192", "pool:4", "6x8", "get:openb-nodes", ""):
        assert resolve({"cluster": name}, True) == resolve({"cluster": name}, False) == {"cluster": name}
    for name in ("get:philly", ""):
        assert resolve({"trace": name}, True) == resolve({"trace": name}, False) == {"trace": {"file": name}}
    assert resolve({"kwargs": {"trace": "jobs.csv"}}, True) == {"kwargs": {"trace": {"file": str(folder / "jobs.csv")}}}
    assert resolve({"trace": None, "cluster": 7}, True) == {"trace": None, "cluster": 7}
    assert plain({"trace": Path("a.csv"), "kwargs": {"x": Path("b")}}) == {"trace": "a.csv", "kwargs": {"x": "b"}}
