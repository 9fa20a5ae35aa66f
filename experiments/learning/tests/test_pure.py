"""The parts of the comparison that need no library."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import compare
import networks
import numpy as np
import ours
import problems
import pytest
import report
import stats
from rows import Row, Store

HERE = Path(__file__).parent.parent
EXAMPLE = json.loads((HERE / "testdata" / "statistics.json").read_text())


def fake(implementation: str, seed: int, returns: list[float], seconds: float = 10.0, problem: int = 0) -> Row:
    """A row as a worker writes it."""
    job = problems.ALL[problem].job(implementation, seed, False)
    result: dict[str, Any] = {
        "steps": job["budget"], "timed_steps": 90_000, "seconds": 2 * seconds, "processor_s": seconds,
        "startup_s": 1.0, "validations": [[5000, 100.0]], "best_step": 5000, "best": returns, "last": returns,
    }  # fmt: skip
    return {"job": job, "result": result, "load": 0.5, "load_after": 1.0, "versions": {"python": "3"}}


def write(store: Store, row: Row) -> None:
    store.open()
    store.path(row["job"]).write_text(json.dumps(row))


def test_the_interquartile_mean_is_the_one_that_gymctl_prints() -> None:
    assert stats.iqm([x for run in EXAMPLE["runs"] for x in run]) == pytest.approx(EXAMPLE["iqm"], abs=1e-9)
    assert stats.iqm([1, 2, 3, 4, 5, 6]) == pytest.approx((0.5 * 2 + 3 + 4 + 0.5 * 5) / 3)
    assert stats.iqm([7]) == 7


def test_the_interval_is_the_one_that_gymctl_prints_but_for_the_draws() -> None:
    low, high = stats.interval(EXAMPLE["runs"])
    # Two intervals of 10,000 draws each differ by about this much when only the draws do.
    spread = [stats.interval(EXAMPLE["runs"], seed=s) for s in range(2, 10)]
    for got, want, other in zip((low, high), EXAMPLE["ci95"], np.transpose(spread)):
        assert abs(got - want) <= 2 * np.ptp(other) + 1
    assert stats.interval([[500.0] * 9] * 2) == (500, 500)


def test_an_interval_over_seeds_is_wider_than_one_over_episodes() -> None:
    apart = stats.interval([[100.0, 110.0] * 20, [300.0, 310.0] * 20, [500.0, 490.0] * 20])
    together = stats.interval([[100.0, 110.0] * 20 + [300.0, 310.0] * 20 + [500.0, 490.0] * 20])
    assert apart[1] - apart[0] > 2 * (together[1] - together[0])


def test_no_worse_means_that_intervals_overlap_or_ours_lies_above() -> None:
    assert stats.no_worse((100, 200), (200, 300))
    assert stats.no_worse((400, 500), (200, 300))
    assert not stats.no_worse((100, 199), (200, 300))


def test_a_row_is_found_again_by_its_whole_job_alone(tmp_path: Path) -> None:
    store, row = Store(tmp_path), fake(problems.OURS, 1, [500.0] * 4)
    assert store.find(row["job"]) is None
    write(store, row)
    assert store.find(row["job"]) == row
    assert store.find(problems.ALL[0].job(problems.OURS, 2, False)) is None
    assert store.find(problems.ALL[0].job(problems.OURS, 1, True)) is None, "other budgets"
    store.path(row["job"]).write_text("{")
    assert store.find(row["job"]) is None, "cut off"


def test_what_was_measured_is_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def work(job: dict[str, Any], store: Store, env: dict[str, str]) -> str:
        asked.append(job["implementation"])
        if job["implementation"] == problems.JAX:
            return "no luck"
        write(store, fake(job["implementation"], job["seed"], [400.0, 500.0]))
        return ""

    monkeypatch.setattr(compare, "work", work)
    monkeypatch.setattr(compare, "missing", lambda job: [])
    monkeypatch.setattr(compare, "build", lambda *_: {})
    words = ["--only", "cartpole-ppo", "--seeds", "1", "--out", str(tmp_path), "--gymctl", __file__]
    assert compare.main(words) == 1
    assert asked == [problems.OURS, problems.CLEANRL, problems.JAX]
    assert "failed: no luck" in capsys.readouterr().out
    asked.clear()
    assert compare.main(words) == 1
    assert asked == [problems.JAX], "what failed is tried again, and nothing else"
    assert {r["implementation"] for r in json.loads((tmp_path / "results.json").read_text())["training"]} == {
        problems.OURS,
        problems.CLEANRL,
    }


def test_an_interruption_keeps_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(job: dict[str, Any], store: Store, env: dict[str, str]) -> str:
        if job["implementation"] != problems.OURS:
            raise KeyboardInterrupt
        write(store, fake(problems.OURS, 1, [500.0]))
        return ""

    monkeypatch.setattr(compare, "work", work)
    monkeypatch.setattr(compare, "missing", lambda job: [])
    monkeypatch.setattr(compare, "build", lambda *_: {})
    words = ["--only", "cartpole-ppo", "--seeds", "1", "--out", str(tmp_path), "--gymctl", __file__]
    assert compare.main(words) == 130
    assert "ours" in (tmp_path / "table.txt").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "cartpole"], "argument --only: got 'cartpole', want some of cartpole-ppo,"),
        (["--seeds", "0"], "argument --seeds: got '0', want a whole number from 1 to 100"),
        (["--seeds", "two"], "argument --seeds: got 'two'"),
        (["--rounds", "-1"], "--rounds"),
        (["--fast"], "unrecognized arguments: --fast"),
        (["--out", __file__], "want a folder"),
        (["--gymctl", "/no/such/file"], "want a file that is there"),
    ],
)
def test_a_mistake_is_one_sentence(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as e:
        compare.main(words)
    err = capsys.readouterr().err
    assert e.value.code == 2
    assert said in err
    assert err.count("\n") == 1


def test_every_side_of_a_problem_is_asked_for_the_same() -> None:
    for p in problems.ALL:
        jobs = [p.job(who, 3, False) for who in p.implementations]
        for job in jobs:
            job.pop("implementation")
        assert all(job == jobs[0] for job in jobs)
        budget, rollout = jobs[0]["budget"], p.settings.rollout
        assert budget % rollout == 0
        assert p.budget <= budget < p.budget + rollout
        assert jobs[0]["clock_from"] % rollout == 0


def test_ours_gets_all_settings_that_are_held_equal() -> None:
    for p in problems.ALL:
        job = p.job(problems.OURS, 1, False)
        keys = ours.changes(job)
        values = [tuple(v) if isinstance(v, list) else v for v in keys.values()]
        told = {"lr", "gamma", "hidden"} | (
            {"ent", "lam", "clip"} if job["algorithm"] == "ppo" else {"eps_end", "eps_share"}
        )
        for name in told - ({"hidden"} if not job["settings"]["hidden"] else set()):
            value = job["settings"][name]
            assert (tuple(value) if isinstance(value, list) else value) in values, (p.name, name)
        assert keys["train.steps"] == job["budget"]
        if job["algorithm"] == "ppo":  # a quarter of the squared error for CleanRL's program, else a half
            assert keys["ppo.vf_coef"] / 2 == (0.25 if problems.CLEANRL in p.others else 0.5), p.name


def test_the_rate_counts_the_processor_that_everyone_has_one_of() -> None:
    assert report.rate(fake(problems.SB3, 1, [1.0])) == pytest.approx(9_000)
    masked = next(i for i, p in enumerate(problems.ALL) if problems.MASKABLE in p.others)
    assert report.rate(fake(problems.MASKABLE, 1, [1.0], problem=masked)) == pytest.approx(4_500), (
        "a server is beside it"
    )


def test_the_table_says_how_often_another_ours_is_and_whether_it_learns_no_worse() -> None:
    rows = [fake(problems.OURS, s, [500.0] * 10, seconds=1) for s in (1, 2)]
    rows += [fake(problems.CLEANRL, s, [100.0 + s] * 10, seconds=10 * s) for s in (1, 2)]
    rows += [fake(problems.JAX, s, [500.0] * 10, seconds=0.5) for s in (1, 2)]
    first, second, third = report.trainings(rows)
    assert "ratio" not in first
    assert second["ratio"] == pytest.approx(10)
    assert second["ratio_by_seed"] == [pytest.approx(10), pytest.approx(20)]
    assert (second["mark"], second["mark_met"]) == (15, False)
    assert third["mark_met"] is None
    assert third["no_worse"] == {"best": True, "last": True}
    table = report.text([first, second, third], [])
    assert "≥ 15: missed" in table
    assert "90,000" in table


def test_networks_take_the_best_round_of_each_side_and_hold_it_against_the_marks() -> None:
    def row(who: str, **result: float) -> Row:
        return {"job": networks.job(who, 1, False), "result": result}

    step, product = "step/mlp 128-64-64-8", "product/64"
    rows = [
        row(networks.PYTORCH, **{step: 400.0, product: 80.0}),
        row(networks.PYTORCH, **{step: 300.0, product: 90.0}),
        row("ours, avx512", **{step: 45.0, product: 120.0, "peak": 150.0}),
        row("ours, avx2", **{step: 70.0, product: 60.0, "peak": 80.0}),
    ]
    found = {r["what"]: r for r in report.nets(rows)}
    assert found[step]["ratio"] == pytest.approx(0.15)
    assert found[step]["mark_met"] is True
    assert found[product]["of_peak"] == pytest.approx(0.8)
    assert found[product]["mark_met"] is True
    table = report.text([], list(found.values()))
    assert table.index("avx512") < table.index("avx2") < table.index("PyTorch")


def test_lines_of_go_benchmarks_are_read() -> None:
    out = "BenchmarkRegression/step/mlp_4-64-64-2_batch_64-2   \t 100\t  22 ns/op\t 21.6 best-µs\t 0 B/op\nPASS\n"
    assert networks.LINE.findall(out)[0][:2] == ("Regression", "step/mlp_4-64-64-2_batch_64")


def test_help_and_mistakes_need_no_library() -> None:
    def said(*words: str) -> subprocess.CompletedProcess[str]:
        bare = [sys.executable, "-S", "compare.py"]  # -S: nothing that was installed
        return subprocess.run([*bare, *words], cwd=HERE, capture_output=True, text=True, check=False)

    assert said("--help").returncode == 0
    wrong = said("--seeds", "0")
    assert wrong.returncode == 2
    assert (
        wrong.stderr
        == "compare.py: argument --seeds: got '0', want a whole number from 1 to 100; see compare.py --help\n"
    )
