"""Schedulers in Python: what they see, what they may decide, and what becomes of those that fail."""

from __future__ import annotations

import csv
import io
import os
import re
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clustergym
from clustergym import Scheduler, SchedulerError, simulate, try_start
from clustergym.simulation import _Plays

Jobs = list[dict[str, Any]]


def draw(rng: np.random.Generator, n: int, spread: float = 30.0) -> Jobs:
    """Jobs whose users ask for more time than they need, or for less."""
    submit = np.sort(rng.integers(0, int(n * spread), n))
    work = rng.integers(10, 2000, n)
    asked = (work * rng.choice([0.5, 1.0, 1.5, 4.0], n)).astype(int) + 1
    size = rng.choice([1, 1, 1, 2, 2, 4, 8], n)
    return [
        {"submit_time": int(s), "duration": int(w), "estimate": int(a), "num_gpu": int(g), "user": f"u{i % 7}"}
        for i, (s, w, a, g) in enumerate(zip(submit, work, asked, size))
    ]


class Shortest(Scheduler):
    def decide(self, now: float, queue: Any, running: Any, cluster: Any) -> Any:
        return try_start(queue.job[np.argsort(queue.estimate_s, kind="stable")])


class Easy(Scheduler):
    """EASY back-filling on FIFO, on GPUs that are only counted."""

    def decide(self, now: float, queue: Any, running: Any, cluster: Any) -> Any:
        free, chosen = cluster.free, []
        gpus, lasts, job = queue.gpus, queue.estimate_s, queue.job
        ends = [*np.maximum(running.start_s + running.estimate_s, now)]
        held = [*running.gpus]
        head = 0
        while head < len(queue) and gpus[head] <= free:
            chosen.append(job[head])
            free -= gpus[head]
            ends.append(now + lasts[head])
            held.append(gpus[head])
            head += 1
        if head < len(queue):
            order = np.argsort(ends, kind="stable")
            will_be = free + np.cumsum(np.asarray(held)[order])
            shadow = np.asarray(ends)[order][np.argmax(will_be >= gpus[head])]
            extra = free + np.sum(np.asarray(held)[np.asarray(ends) <= shadow]) - gpus[head]
            for i in range(head + 1, len(queue)):
                late = now + lasts[i] > shadow
                if gpus[i] <= free and (not late or gpus[i] <= extra):
                    chosen.append(job[i])
                    free -= gpus[i]
                    extra -= gpus[i] if late else 0
        return [clustergym.start(j) for j in chosen]


def same(a: clustergym.Run, b: clustergym.Run) -> None:
    for column in ("id", "first_start_s", "finish_s", "wait_s", "state"):
        assert np.array_equal(a.jobs[column], b.jobs[column]), column
    assert a.metrics == b.metrics


def test_an_order_in_python_equals_the_simulators_own(rng: np.random.Generator) -> None:
    result = simulate(draw(rng, 400), "4x8", [Shortest(), "sjf+skip"], estimates="exact")
    same(*result)
    assert result[0].points > 300
    assert result["sjf+skip"].points == 0
    assert result[0].rung == "exact"


def test_easy_in_python_equals_the_simulators_own_job_by_job(rng: np.random.Generator) -> None:
    result = simulate(draw(rng, 1500, 100.0), "pool:32", [Easy(), "fifo+strict+easy"])
    assert "requested time" in result.estimates
    same(*result)
    assert result[0].metrics["wait_s"]["mean"] > 100


def test_schedulers_are_asked_when_they_want(rng: np.random.Generator) -> None:
    class Room(Easy):
        ask_when = "room"

    class Never(Easy):
        ask_when = "never"

    jobs = draw(rng, 300, 100.0)
    easy, room = simulate(jobs, "pool:32", [Easy(), Room()])
    same(easy, room)
    assert 0 < room.points < 0.8 * easy.points
    with pytest.raises(clustergym.BadRequest, match="want one of waiting, room, always"):
        simulate(jobs, "pool:32", Never())


class Looks(Scheduler):
    """Notes what it sees."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        self.began: list[tuple[str, int]] = []

    def __deepcopy__(self, memo: Any) -> Looks:
        return self

    def reset(self, cluster: Any, seed: int) -> None:
        self.began.append((cluster.name, seed))

    def decide(self, now: float, queue: Any, running: Any, cluster: Any) -> Any:
        self.seen.append({
            "now": now, "queue": np.asarray(queue), "running": np.asarray(running), "free": cluster.free,
            "gpu_free": cluster.gpu_free.tolist(), "node_free": cluster.node_free.tolist(),
        })  # fmt: skip
        return try_start(queue.job)


def test_what_a_scheduler_sees() -> None:
    look = Looks()
    jobs = [
        {"job_id": "a", "submit_time": 0, "duration": 100, "num_gpu": 2, "user": "ann", "estimate": 80, "priority": 3},
        {"job_id": "b", "submit_time": 10, "duration": 50, "num_gpu": 1, "user": "bob", "estimate": 60, "vc": "x"},
        {"job_id": "c", "submit_time": 20, "duration": 30, "num_gpu": 3, "user": "cem", "estimate": 30},
        {"job_id": "d", "submit_time": 90, "duration": 5, "num_gpu": 4, "user": "dan", "estimate": 30},
    ]
    result = simulate(jobs, "2x2", look, seed=7, estimates="trace")
    assert look.began == [("2x2", 7)]
    assert [s["now"] for s in look.seen] == [0, 10, 20, 60, 90, 100, 130]
    third, fifth = look.seen[2], look.seen[4]
    queue, running = third["queue"], third["running"]
    assert queue["id"].tolist() == ["c"]
    assert (queue["gpus"][0], queue["waited_s"][0], queue["estimate_s"][0]) == (3, 0, 30)
    assert np.isnan(queue["estimate_q50_s"][0])
    assert running["id"].tolist() == ["a", "b"]
    assert running["user"].tolist() == ["ann", "bob"]
    assert running["priority"].tolist() == [3, 0]
    assert running["start_s"].tolist() == [0, 10]
    assert running["ran_s"].tolist() == [20, 10]
    assert running["left_s"].tolist() == [60, 50]
    assert [w.tolist() for w in running["where"]] == [[0, 1], [2]]
    assert (third["free"], third["gpu_free"], third["node_free"]) == (1, [0, 0, 0, 1], [0, 1])
    assert fifth["queue"]["waited_s"].tolist() == [70, 0]
    # a has outlived its 80 s, so it is expected to run for twice as long.
    assert fifth["running"]["left_s"].tolist() == [70]
    assert result.jobs["finish_s"].tolist() == [100, 60, 130, 135]
    assert result.metrics["makespan_s"] == 135


def test_columns_are_chosen_by_name_mask_and_index(rng: np.random.Generator) -> None:
    class Checks(Scheduler):
        def decide(self, now: float, queue: Any, running: Any, cluster: Any) -> Any:
            assert queue.columns[:2] == ("job", "id")
            assert len(queue[queue.gpus > 1]) == np.sum(queue["gpus"] > 1)
            assert queue[::-1].job.tolist() == queue.job.tolist()[::-1]
            assert queue[np.argsort(queue.gpus)].gpus.tolist() == sorted(queue.gpus.tolist())
            assert len(queue[0]) == 1
            with pytest.raises(AttributeError, match="no column 'runtime', there are job, id"):
                queue.runtime
            with pytest.raises(KeyError, match="no column 'start_s'"):
                queue["start_s"]
            return try_start(queue[np.argmin(queue.gpus)].job)

    run = simulate(draw(rng, 60), "1x8", Checks(), estimates="history")[0]
    assert run.metrics["finished"] == 60
    assert run.rung == "causal"


def test_gpus_sizes_stops_and_timers() -> None:
    class Script(Scheduler):
        ask_when = "always"

        def decide(self, now: float, queue: Any, running: Any, cluster: Any) -> Any:
            if now == 0:
                return [clustergym.start(1, gpus=[4, 5]), clustergym.start(0), clustergym.wait(10)]
            if now == 10:
                where = {i: w.tolist() for i, w in zip(running.id, running.where)}
                assert where == {"a": [0], "b": [4, 5]}
                return [clustergym.move(0, [7]), clustergym.resize(1, 4), clustergym.wait(20)]
            if now == 20:
                assert dict(zip(running.id, running.gpus)) == {"a": 1, "b": 4}
                assert running.where[0].tolist() == [7]
                return [clustergym.stop(0), clustergym.resize(1, gpus=[0]), clustergym.wait(30)]
            if now == 30:
                assert (queue.id.tolist(), queue.ran_s.tolist(), queue.waited_s.tolist()) == (["a"], [20], [10])
                return try_start(queue.job)
            return None

    jobs = [
        {"job_id": "a", "submit_time": 0, "duration": 100, "num_gpu": 1, "min_gpu": "", "max_gpu": ""},
        {"job_id": "b", "submit_time": 0, "duration": 100, "num_gpu": 2, "min_gpu": 1, "max_gpu": 4},
    ]
    table = simulate(jobs, "2x4", Script()).jobs
    assert table["preemptions"].tolist() == [1, 0]
    assert table["migrations"].tolist() == [1, 0]
    assert table["resizes"].tolist() == [0, 2]
    assert table["finish_s"][0] == 110


class Does(Scheduler):
    """Calls a function at its third decision, and starts what fits at the others."""

    def __init__(self, what: Callable[[Any], Any]) -> None:
        self.what = what
        self.asked = 0

    def decide(self, now: float, queue: Any, running: Any, cluster: Any) -> Any:
        self.asked += 1
        return self.what(queue) if self.asked == 3 else try_start(queue.job)


def fails(_: Any) -> Any:
    raise RuntimeError("no\nidea")


THREE: Jobs = [{"submit_time": 10 * i, "duration": 100, "num_gpu": 1} for i in range(6)]


@pytest.mark.parametrize(
    ("what", "says"),
    [
        (fails, "Does.decide at 20 s raised RuntimeError: no idea"),
        (
            lambda q: "start 1",
            "Does.decide at 20 s decided what cannot be: got 'start 1', want decisions such as clustergym.start",
        ),
        (lambda q: 2, "got 2, want decisions"),
        (lambda q: [q.job[0]], r"want decisions such as clustergym.start\(job\)"),
        (lambda q: clustergym.start(float("nan")), "got nan as a job, want a whole number"),
        (lambda q: clustergym.start(1.5), "got 1.5 as a job, want a whole number"),
        (lambda q: clustergym.start(-1), "got -1 as a job, want 0 to"),
        (lambda q: clustergym.start("a"), "got 'a' as a job"),
        (lambda q: clustergym.start(None), "got None as a job"),
        (lambda q: clustergym.start(0, gpus=["x"]), "got 'x' as a GPU"),
        (lambda q: clustergym.start(q.job, gpus=3), "Does.decide at 20 s raised TypeError"),
        (lambda q: clustergym.wait(float("inf")), r"got wait\(inf\), want a time in seconds"),
        (lambda q: clustergym.wait(20), "at 20 s: "),
        (lambda q: clustergym.start(99), "at 20 s, decision 1, to start job 99: there is no such job"),
        (lambda q: clustergym.start(0), "it is running, want one that is waiting"),
        (
            lambda q: [clustergym.start(2)] * 2,
            r"decision 2, to start job 2 \(2\): there is a decision about it at this time",
        ),
        (lambda q: clustergym.start(2, gpus=[0]), r"at 20 s, decision 1, to start job 2 \(2\): "),
        (lambda q: clustergym.start(2, gpus=[64]), "there is no GPU 64, want 0 to 3"),
        (lambda q: clustergym.resize(0, 2), "it is not elastic"),
        (lambda q: clustergym.stop(q.job), r"to stop job 2 \(2\): it is waiting, want one that is running"),
    ],
)
def test_a_scheduler_that_fails_is_told_when_and_why(what: Callable[[Any], Any], says: str) -> None:
    with pytest.raises(SchedulerError, match=says) as e:
        simulate(THREE, "2x2", Does(what))
    assert e.value.now_s == 20
    assert "\n" not in str(e.value)


def test_others_go_on_when_one_fails(rng: np.random.Generator) -> None:
    result = simulate(THREE, "2x2", [Does(fails), Does(lambda q: clustergym.start(99)), "fifo", Shortest()])
    assert [run.error is None for run in result] == [False, False, True, True]
    assert "no idea" in str(result[0].error)
    assert "at 20 s" in str(result[1].error)
    assert result["fifo"].metrics["finished"] == 6
    assert "no idea" in str(result)
    assert result.table["finished"].tolist()[2:] == [6, 6]
    with pytest.raises(ValueError, match="there are 4 runs: choose one"):
        result.metrics


def test_a_scheduler_that_hangs_is_left_behind() -> None:
    def hang(_: Any) -> None:
        time.sleep(5)

    begun = time.monotonic()
    result = simulate(THREE, "2x2", [Does(hang), Shortest()], limit_s=0.2)
    assert time.monotonic() - begun < 4
    assert str(result[0].error) == "Does.decide at 20 s took longer than 0.2 s (limit_s)"
    assert result[1].metrics["finished"] == 6


def test_schedulers_and_their_mistakes_are_equal_with_a_limit(rng: np.random.Generator) -> None:
    jobs = draw(rng, 50)
    same(simulate(jobs, "1x8", Shortest())[0], simulate(jobs, "1x8", Shortest(), limit_s=30)[0])
    with pytest.raises(SchedulerError, match="raised RuntimeError: no idea"):
        simulate(THREE, "2x2", Does(fails), limit_s=30)


def test_several_seeds_are_several_runs() -> None:
    class Counts(Shortest):
        calls = 0

        def decide(self, now: float, queue: Any, running: Any, cluster: Any) -> Any:
            self.calls += 1
            assert self.calls <= 12  # every run has a copy
            return super().decide(now, queue, running, cluster)

    own = Counts()
    result = simulate(THREE, "2x2", [own, "sjf"], seed=[1, 2], estimates="noisy:0.5")
    assert [(run.policy, run.seed) for run in result] == [
        ("Counts", 1),
        ("Counts", 2),
        ("sjf+strict", 1),
        ("sjf+strict", 2),
    ]
    assert own.calls == 0
    assert result.table.columns[:2] == ["policy", "seed"]


class Frame:
    """As much of a DataFrame as is used."""

    columns = ("submit_time", "duration", "num_gpu")

    def __len__(self) -> int:
        return 2

    def to_csv(self, path: Any, index: bool) -> None:
        assert not index
        Path(path).write_text("submit_time,duration,num_gpu\n0,5,1\n1,5,1\n")


def test_traces_may_be_files_maps_frames_and_lists(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("submit_time,duration,num_gpu\n0,5,1\n1,5,1\n")
    for trace in (
        path,
        str(path),
        {"file": str(path)},
        Frame(),
        [{"submit_time": i, "duration": 5, "num_gpu": 1} for i in (0, 1)],
    ):
        result = simulate(trace, {"racks": [{"nodes": [{"gpus": 1}]}]}, Shortest())
        assert result.jobs["finish_s"].tolist() == [5, 10]
    assert str(path) in str(simulate(path, "1x1", "fifo"))
    assert "clustergym-" not in str(simulate(Frame(), "1x1", "fifo"))


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"trace": 5}, TypeError, "trace: got a int, want a path"),
        ({"trace": []}, ValueError, "trace: got no job"),
        ({"trace": [{"submit_time": 0, "num_gpu": 1}]}, clustergym.BadKwargs, "duration"),
        ({"trace": "no.csv"}, clustergym.BadKwargs, "no.csv"),
        ({"cluster": "nowhere"}, clustergym.BadKwargs, "cluster"),
        ({"policy": Shortest}, TypeError, "got the class Shortest: give an object of it"),
        ({"policy": []}, ValueError, "got none"),
        ({"policy": [Shortest(), 3]}, TypeError, "policy: got 3"),
        ({"policy": ""}, ValueError, "empty"),
        ({"policy": "sfj"}, clustergym.BadKwargs, "sjf"),
        ({"estimates": "guess"}, clustergym.BadKwargs, "estimates"),
        ({"placement": "nearby"}, clustergym.BadKwargs, "placement"),
        ({"horizn": 5}, clustergym.BadKwargs, "horizn"),
        ({"horizon": -5}, clustergym.BadKwargs, "horizon"),
        ({"warmup": 3, "tail": 3}, clustergym.BadKwargs, "leave none"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        simulate(**{"trace": THREE, "cluster": "2x2", "policy": "fifo", **arguments})


def test_a_server_elsewhere_is_given_no_jobs_of_this_machine(url: str) -> None:
    with pytest.raises(clustergym.BadKwargs, match="jobs in memory go to a server that this process starts"):
        simulate(THREE, "2x2", "fifo", url=url)
    assert simulate({"synth": {"jobs": 30}}, "2x8", Shortest(), url=url).metrics["finished"] <= 30


def test_a_horizon_leaves_jobs_unfinished() -> None:
    result = simulate(THREE, "1x1", Shortest(), horizon=150)
    assert result.metrics["finished"] == 1
    assert result.jobs["state"].tolist().count("unfinished") == 5
    assert any("horizon" in note for note in result[0].notes)


@pytest.fixture
def brief() -> Iterator[str]:
    """A server that forgets lost sessions at once."""
    with clustergym.LocalServer(("--resume-window", "0s"), timeout=60) as server:
        yield server.url


def test_a_client_that_dies_leaves_nothing_on_the_server(brief: str) -> None:
    client = clustergym.Client(brief)
    _Plays(client, {"trace": {"synth": {"jobs": 500}}, "cluster": "2x8"}, [(Shortest(), 1)])

    def gauge(name: str) -> float:
        with urllib.request.urlopen(brief.replace("ws:", "http:") + "/metrics", timeout=10) as page:
            lines = page.read().decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(name))

    assert gauge("clustergym_handles ") == 1
    assert gauge('clustergym_memory_reserved_bytes{kind="environments"}') > 0
    assert client._conn is not None
    client._conn.close()  # without a word
    until = time.monotonic() + 20
    while gauge("clustergym_handles ") + gauge("clustergym_memory_reserved_bytes") > 0:
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_lost_connection_changes_nothing(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    clients: list[clustergym.Client] = []

    class Noted(clustergym.Client):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            clients.append(self)

    class Breaks(Shortest):
        asked = 0

        def decide(self, now: float, queue: Any, running: Any, cluster: Any) -> Any:
            self.asked += 1
            if self.asked % 20 == 5 and clients[0].stats.resumes < 3:
                conn = clients[0]._conn
                assert conn is not None
                with socket.socket(fileno=os.dup(conn.fileno())) as same_socket:
                    same_socket.shutdown(socket.SHUT_RDWR)
            return super().decide(now, queue, running, cluster)

    monkeypatch.setattr(clustergym.simulation, "Client", Noted)
    same(*simulate(draw(rng, 100), "1x8", [Breaks(), "sjf+skip"], estimates="exact"))
    assert clients[0].stats.resumes == 3


def test_tables_are_written_as_csv_latex_and_html() -> None:
    table = clustergym.Table({"policy": ["a&b", "c<d"], "JCT mean (s)": [1.5, float("nan")], "n": np.array([3, 4])})
    text = table.to_csv()
    assert text is not None
    assert list(csv.DictReader(io.StringIO(text))) == [
        {"policy": "a&b", "JCT mean (s)": "1.5", "n": "3"}, {"policy": "c<d", "JCT mean (s)": "", "n": "4"},
    ]  # fmt: skip
    assert r"a\&b & 1.50 & 3 \\" in table.to_latex()
    assert "c&lt;d" in table._repr_html_()
    assert str(table).splitlines() == ["policy  JCT mean (s)  n", "a&b             1.50  3", "c<d                   4"]
    assert list(table.rows())[0]["n"] == 3
    assert len(table) == 2
    with pytest.raises(KeyError, match="no column 'JCT', there are policy"):
        table["JCT"]
    with pytest.raises(ValueError, match="different lengths"):
        clustergym.Table({"a": [1], "b": [1, 2]})
    long = clustergym.Table({"i": np.arange(100)})
    assert "60 more rows" in str(long)
    assert "60 more rows" in long._repr_html_()


def test_the_code_of_the_page_runs_in_order(
    rng: np.random.Generator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = Path(__file__).parents[2] / "docs" / "guides" / "python-scheduler.md"
    code = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(code) == 3
    monkeypatch.chdir(tmp_path)
    jobs = draw(rng, 200, 100.0)
    with Path("jobs.csv").open("w", newline="") as out:
        writer = csv.DictWriter(out, list(jobs[0]))
        writer.writeheader()
        writer.writerows(jobs)
    names: dict[str, Any] = {}
    for number, text in enumerate(code, 1):
        exec(compile(text, f"docs/guides/python-scheduler.md, block {number}", "exec"), names)
    assert re.search(
        r"^at \d+ s, decision \d+, to start job \d+ \(\d+\): it does not fit", capsys.readouterr().out, re.M
    )
