"""Summaries of measurements, what they were made on, and the table that shows them."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any


def summary(values: Sequence[float], scale: float = 1.0) -> dict[str, float]:
    """Median, 95th percentile and extremes of some measurements."""
    scaled = sorted(value * scale for value in values)
    return {
        "p50": statistics.median(scaled),
        "p95": scaled[min(len(scaled) - 1, round(0.95 * (len(scaled) - 1)))],
        "min": scaled[0],
        "max": scaled[-1],
        "n": len(scaled),
    }


def machine(*packages: str) -> dict[str, Any]:
    """What the figures were measured on, with the versions of these packages and of our own."""
    return {
        "cpus": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "os": platform.platform(),
        "python": platform.python_version(),
        **{name: version(name) for name in (*packages, "durable-gmi")},
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def per_turn(before: float | None, after: float | None, turns: int) -> float | None:
    """Milliseconds of CPU a turn, between two readings in seconds."""
    return None if before is None or after is None else (after - before) * 1000 / turns


def show(result: dict[str, Any]) -> str:
    """The figures as text."""
    where = ", ".join(f"{k} {v}" for k, v in result["machine"].items())
    rows = [("", "ours", "loop", "ours / loop")]
    for name in ("plain", "tool", "remembering"):
        of = result[name]
        for figure in ("p50", "p95"):
            rows.append(_compared(f"{name} turn, {figure}, ms", of, figure))
        rows.append((f"{name} turn, min … max, ms", *_ranges(of), ""))
        if of["ours"]["worker_cpu_ms"] is not None:
            rows.append(_compared(f"{name} turn, worker CPU, ms", of, "worker_cpu_ms"))
    many = result["throughput"]
    sessions = result["sizes"]["sessions"]
    speeds = {side: many[side]["turns_per_second"] for side in many}
    rows.append(_compared(f"turns/s, {sessions} sessions", speeds, "p50"))
    rows.append(("turns/s, min … max", *_ranges(speeds), ""))
    for process in many["ours"]["cpu_ms"]:
        cpu = {side: many[side]["cpu_ms"][process] for side in many}
        rows.append(_compared(f"CPU of the {process} a turn then, ms", cpu, "p50"))
    ours, loop = result["history_ours"], result["history_loop"]
    for name in ours:
        of = {"ours": ours[name], "loop": loop[name]}
        rows.append(_compared(f"history events a turn, {name}", of, "events"))
        rows.append(_compared(f"history bytes a turn, {name}", of, "bytes"))
    for name in ("plain", "tool"):
        of = {"ours": ours[name]["kinds"], "loop": loop[name]["kinds"]}
        for kind, label in (
            ("workflow_task_completed", "workflow tasks"),
            ("activity_task_completed", "activities"),
        ):
            rows.append(_compared(f"{label} a turn, {name}", of, kind))
    rows.append(_compared("RSS a cached session, KB", result["memory"], "kb_per_session"))
    alone = result["first_delta"]
    for name, label in (("from_model", "model's first text"), ("from_send", "the call")):
        rows.append(
            (f"first delta after {label}, ms (min / median / max)", _spread(alone[name]), "-", "")
        )
    killed = result["recovery"]
    for name, label in (
        ("to_first_delta_s", "worker killed: to the first new delta, s"),
        ("to_end_s", "worker killed: to the turn's end, s"),
        ("undisturbed_turn_s", "the same turn undisturbed, s"),
    ):
        rows.append((label, _spread(killed[name]), "-", ""))
    lines = [where, "", *_table(rows), "", "Inside the activities, ms (from the histories):"]
    for side, of in (("ours", ours), ("loop", loop)):
        for name in ("plain", "tool"):
            spans = of[name]["activities"]
            told = ", ".join(f"{kind} {_number(s['p50'])}" for kind, s in spans.items())
            lines.append(f"  {side}, {name}: {told}")
    return "\n".join(lines)


def _compared(label: str, of: dict[str, Any], figure: str) -> tuple[str, str, str, str]:
    ours, loop = of["ours"].get(figure, 0.0), of["loop"].get(figure, 0.0)
    ratio = f"{ours / loop:.2f}" if loop else ""
    return label, _number(ours), _number(loop), ratio


def _ranges(of: dict[str, Any]) -> tuple[str, str]:
    ours, loop = (f"{_number(s['min'])} … {_number(s['max'])}" for s in (of["ours"], of["loop"]))
    return ours, loop


def _spread(s: dict[str, float]) -> str:
    return f"{_number(s['min'])} / {_number(s['p50'])} / {_number(s['max'])}"


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.1f}"


def _table(rows: Sequence[tuple[str, str, str, str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(row[i].rjust(widths[i]) for i in (1, 2, 3))]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "-" * (sum(widths) + 6))
    return lines
