"""Tables of what was measured: text for people, JSON and CSV for programs."""

from __future__ import annotations

import csv
import json
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import networks
import problems
import stats
from rows import Row


def trainings(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """One record for each problem and implementation, over its seeds."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row["job"]["kind"] == "training":
            groups.setdefault((row["job"]["problem"], row["job"]["implementation"]), []).append(row)
    found = []
    for problem in problems.ALL:
        ours = groups.get((problem.name, problems.OURS))
        base = training(problem, problems.OURS, ours) if ours else None
        for implementation in problem.implementations:
            group = groups.get((problem.name, implementation))
            if not group:
                continue
            record = training(problem, implementation, group)
            if base and ours and implementation != problems.OURS:
                record |= against(problem, base, record, ours, group)
            found.append(record)
    return found


def rate(row: Row) -> float:
    """Steps per second of the processor that everyone has one of.

    On a machine that does nothing else that is the time on the clock; on a shared one, what others take does not count.
    Where a server works beside one of a problem's implementations it is the time on the clock for all of them.
    """
    r = row["result"]
    beside = any("bridge" in who for p in problems.ALL if p.name == row["job"]["problem"] for who in p.others)
    return float(r["timed_steps"] / (r["seconds"] if beside else r["processor_s"]))


def training(problem: problems.Problem, implementation: str, group: list[Row]) -> dict[str, Any]:
    """What the seeds of one implementation came to."""
    results = [row["result"] for row in group]
    record: dict[str, Any] = {
        "problem": problem.name,
        "title": problem.title,
        "implementation": implementation,
        "seeds": [row["job"]["seed"] for row in group],
        "steps": results[0]["steps"],
    }
    earned = [r["training_return"] for r in results if r.get("training_return") is not None]
    if earned:
        record["training_return"] = earned
    for which in ("best", "last") if "best" in results[0] else ():
        runs = [r[which] for r in results]
        low, high = stats.interval(runs)
        record[which] = {
            "iqm": stats.iqm([x for run in runs for x in run]),
            "ci95": [low, high],
            "means": [statistics.fmean(run) for run in runs],
        }
    rates = [rate(row) for row in group]
    record["steps_per_s"] = {
        "best": max(rates),
        "all": rates,
        "wall": [r["timed_steps"] / r["seconds"] for r in results],
    }
    record["startup_s"] = min(r["startup_s"] for r in results)
    record["load"] = [round(max(row["load"], row["load_after"]), 1) for row in group]
    return record


def against(
    problem: problems.Problem, base: dict[str, Any], record: dict[str, Any], ours: list[Row], group: list[Row]
) -> dict[str, Any]:
    """What comparing with ours adds to another's record: how often its rate ours is, and whether ours learns no worse."""
    mark = problem.marks.get(record["implementation"])
    ratio = base["steps_per_s"]["best"] / record["steps_per_s"]["best"]
    rates = {row["job"]["seed"]: rate(row) for row in ours}
    pairs = [rates[row["job"]["seed"]] / rate(row) for row in group if row["job"]["seed"] in rates]
    return {
        "ratio": ratio,
        "ratio_by_seed": pairs,
        "mark": mark,
        "mark_met": None if mark is None else ratio >= mark,
        "no_worse": {
            w: stats.no_worse(tuple(base[w]["ci95"]), tuple(record[w]["ci95"])) for w in ("best", "last") if w in record
        },
    }


def nets(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """One record for each measurement of networks: the best of all rounds, by implementation."""
    best: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["job"]["kind"] != "networks":
            continue
        for key, value in row["result"].items():
            seen = best.setdefault(key, {})
            who = row["job"]["implementation"]
            better = max if fast(key) else min
            seen[who] = better(seen.get(who, value), value)
    found = []
    for key in order():
        if key not in best:
            continue
        seen = best[key]
        own = [seen[w] for w in seen if w != networks.PYTORCH]
        record: dict[str, Any] = {"what": key, "unit": "GFLOP/s" if fast(key) else "µs", "by": seen}
        if own:
            ours = max(own) if fast(key) else min(own)
            record["ours"] = ours
            if networks.PYTORCH in seen:
                record["ratio"] = ours / seen[networks.PYTORCH]
            if key.startswith("product/") and "peak" in best:
                record["of_peak"] = ours / max(best["peak"].values())
                record["mark"], record["mark_met"] = 0.8, record["of_peak"] >= 0.8
            elif "ratio" in record and key in MARKS:
                record["mark"], record["mark_met"] = MARKS[key], record["ratio"] <= MARKS[key]
        found.append(record)
    return found


MARKS = {f"step/{c.name}": c.step_mark for c in networks.CASES} | {
    f"forward/{c.name}": c.forward_mark for c in networks.CASES
}


def fast(key: str) -> bool:
    """Whether a higher number is better."""
    return key == "peak" or key.startswith("product/")


def order() -> list[str]:
    names = [c.name for c in networks.CASES]
    return (
        [f"step/{n}" for n in names]
        + [f"forward/{n}" for n in names]
        + ["peak"]
        + [f"product/{n}" for n in networks.SIZES]
    )


def columns(header: list[str], body: list[list[str]], left: int) -> str:
    """A table of text; so many columns from the left are aligned to the left."""
    widths = [max(len(row[i]) for row in [header, *body]) for i in range(len(header))]
    lines = [header, *body]
    return "\n".join(
        "  ".join(cell.ljust(w) if i < left else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))).rstrip()
        for row in lines
    )


def number(x: float) -> str:
    """Three digits that matter, or all before the point."""
    if x == 0 or abs(x) >= 100:
        return f"{x:,.0f}"
    return f"{x:.1f}" if abs(x) >= 10 else f"{x:.2f}"


def value(x: float) -> str:
    return f"{x:.1f}".removesuffix(".0")


def span(record: dict[str, Any], which: str) -> str:
    """An IQM and its interval; where only training was judged, the seeds' returns in it."""
    if which in record:
        low, high = record[which]["ci95"]
        return f"{value(record[which]['iqm'])} [{value(low)}, {value(high)}]"
    if which == "last" and "training_return" in record:
        return "in training " + ", ".join(value(x) for x in record["training_return"])
    return ""


def verdict(no_worse: dict[str, bool]) -> str:
    """Whether ours learns no worse, by the best and by the last checkpoints."""
    if not no_worse or all(no_worse.values()):
        return "yes" if no_worse else ""
    return next((f"{which} only" for which, good in no_worse.items() if good), "no")


def met(record: dict[str, Any], sign: str) -> str:
    if record.get("mark") is None:
        return ""
    return f"{sign} {record['mark']:g}: {'met' if record['mark_met'] else 'missed'}"


def text(trained: list[dict[str, Any]], measured: list[dict[str, Any]]) -> str:
    """Both tables."""
    parts = []
    if trained:
        body, before = [], ""
        for r in trained:
            title = r["title"] if r["title"] != before else ""
            before = r["title"]
            cells = [title, r["implementation"], f"{r['steps']:,}", str(len(r["seeds"]))]
            cells += [span(r, "best"), span(r, "last"), f"{r['steps_per_s']['best']:,.0f}"]
            if "ratio" in r:
                cells += [f"{number(r['ratio'])}x", met(r, "≥"), verdict(r["no_worse"])]
            else:
                cells += ["", "", ""]
            body.append(cells)
        header = [
            "problem",
            "implementation",
            "steps",
            "seeds",
            "return, best [95 %]",
            "return, last [95 %]",
            "steps/s",
            "ours is",
            "mark",
            "no worse",
        ]
        parts.append(columns(header, body, 2))
    if measured:
        who = [w for w in dict.fromkeys(w for r in measured for w in r["by"]) if w != networks.PYTORCH]
        who.sort(key=lambda w: [w.endswith(s) for s in networks.SETS].index(True))
        body = []
        for r in measured:
            by = [number(r["by"][w]) if w in r["by"] else "" for w in [*who, networks.PYTORCH]]
            of_peak = f"{r['of_peak']:.2f}" if "of_peak" in r else ""
            sign = "≥" if "of_peak" in r else "≤"
            body.append([r["what"], r["unit"], *by, f"{r['ratio']:.2f}" if "ratio" in r else "", of_peak, met(r, sign)])
        header = ["network", "unit", *who, networks.PYTORCH, "ours/PyTorch", "of peak", "mark"]
        parts.append(columns(header, body, 2))
    return "\n\n".join(parts)


def write(folder: Path, rows: list[Row]) -> str:
    """Writes results.json, results.csv, networks.csv and table.txt, and returns the table."""
    trained, measured = trainings(rows), nets(rows)
    versions: dict[str, str] = {}
    for row in rows:
        versions |= row.get("versions", {})
    table = text(trained, measured)
    document = {"versions": versions, "training": trained, "networks": measured}
    (folder / "results.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    (folder / "table.txt").write_text(table + "\n")
    with (folder / "results.csv").open("w", newline="") as f:
        out = csv.writer(f)
        out.writerow(["problem", "implementation", "seed", "steps", "best_mean", "last_mean", "steps_per_s"])
        for r in trained:
            for i, seed in enumerate(r["seeds"]):
                means = [r[which]["means"][i] if which in r else "" for which in ("best", "last")]
                out.writerow([r["problem"], r["implementation"], seed, r["steps"], *means, r["steps_per_s"]["all"][i]])
    with (folder / "networks.csv").open("w", newline="") as f:
        out = csv.writer(f)
        out.writerow(["what", "unit", "implementation", "value"])
        for r in measured:
            out.writerows([r["what"], r["unit"], who, x] for who, x in r["by"].items())
    return table
