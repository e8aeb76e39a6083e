"""The results as a table on the terminal, as JSON, as a plot, and as docs/performance.md."""

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.growth import Grown
from bench.trial import Fact, Row

INTRODUCTION = """# Performance

Measured by `make bench` on {date}: trilogue beside Apache Kafka {kafka}, both on one machine, taking turns; medians
of {rounds} rounds after one that does not count.  Client and broker share the machine's {cores} cores, as on a laptop.
While latencies are measured the other broker is held still.

{machine}

A ratio is ours divided by Apache Kafka's; the spread is that of neighbouring rounds.  Drivers: librdkafka {librdkafka}
and recorded frames, both from C (`bench/native/`), Kafka's own performance tools, Spark {spark}.  Compare ratios, not
absolute figures: machines are noisy.

![ratios](performance.png)
"""


def about(rounds: int) -> dict[str, Any]:
    import confluent_kafka

    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.machine(),
    )
    memory = int(Path("/proc/meminfo").read_text().split()[1]) // (1 << 20)
    congestion = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    java = subprocess.run(["java", "-version"], capture_output=True, text=True).stderr.splitlines()
    return {
        "date": time.strftime("%Y-%m-%d"),
        "rounds": rounds,
        "cores": os.cpu_count(),
        "machine": (
            f"{model}, {os.cpu_count()} cores, {memory} GiB, Linux {platform.release()}; "
            f"CPython {platform.python_version()}, {java[0] if java else 'no Java'}; TCP {congestion}; "
            f"load before the run {os.getloadavg()[0]:.1f}"
        ),
        "kafka": "4.3.1",
        "librdkafka": confluent_kafka.libversion()[0],
        "spark": version("pyspark"),
        "trilogue": version("trilogue"),
    }


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def target(row: Row) -> str:
    if row.figure.target is None:
        return ""
    return f"{'>=' if row.figure.more_is_better else '<='} {row.figure.target:g}"


def cells(row: Row) -> list[str]:
    ours, theirs = row.medians
    low, high = row.spread
    unit = row.figure.unit
    return [
        f"{row.name}: {unit}",
        number(ours),
        number(theirs),
        f"{row.ratio:.2f}",
        f"{low:.2f}-{high:.2f}",
        target(row),
        row.verdict,
    ]


TITLES = ["", "trilogue", "Apache Kafka", "ratio", "spread", "target", ""]


def text(rows: Sequence[Row], facts: Sequence[Fact], grown: Sequence[Grown]) -> str:
    """For the terminal."""
    lines = []
    section = ""
    for row in rows:
        if row.section != section:
            section = row.section
            lines += ["", f"{section:88}{'trilogue':>10}{'Kafka':>10}{'ratio':>8}{'spread':>14}  target"]
        name, ours, theirs, ratio, spread, wanted, verdict = cells(row)
        lines.append(f"  {name:86}{ours:>10}{theirs:>10}{ratio:>8}{spread:>14}  {wanted:8}{verdict}")
    if facts:
        lines += ["", "ours alone"]
    lines += (
        f"  {each.name}: {number(each.value)} {each.unit}, target <= {each.most:g}  {each.verdict}" for each in facts
    )
    if grown:
        lines += ["", "growth (ours)"]
    for each in grown:
        pairs = ", ".join(f"{size:,}: {number(value)}" for size, value in zip(each.sizes, each.costs, strict=True))
        lines.append(f"  {each.what}: {each.cost}: {pairs}; {each.factor:.2f}x, target <= 1.5  {each.verdict}")
    return "\n".join(lines)


def markdown(rows: Sequence[Row], facts: Sequence[Fact], grown: Sequence[Grown], known: dict[str, Any]) -> str:
    parts = [INTRODUCTION.format(**known)]
    section = ""
    for row in rows:
        if row.section != section:
            section = row.section
            parts += [f"\n## {section[0].upper()}{section[1:]}\n", table_row(TITLES), table_row(["---"] * len(TITLES))]
        parts.append(table_row(cells(row)))
    if facts:
        titles = ["", "trilogue", "target", ""]
        parts += ["\n## Ours alone\n", table_row(titles), table_row(["---"] * len(titles))]
    for fact in facts:
        parts.append(table_row([f"{fact.name}: {fact.unit}", number(fact.value), f"<= {fact.most:g}", fact.verdict]))
    if grown:
        parts += [
            "\n## Growth\n",
            "What a message costs our broker as other things grow; flat within 1.5x is the target.\n",
        ]
        parts += [table_row(["", "cost at each size", "largest over first", ""]), table_row(["---"] * 4)]
    for each in grown:
        pairs = ", ".join(f"{size:,}: {number(value)}" for size, value in zip(each.sizes, each.costs, strict=True))
        parts.append(table_row([f"{each.what}: {each.cost}", pairs, f"{each.factor:.2f}", each.verdict]))
    return "\n".join(parts) + "\n"


def table_row(values: Sequence[str]) -> str:
    return f"| {' | '.join(values)} |"


def plot(rows: Sequence[Row], path: Path) -> None:
    """How many times better than Apache Kafka, for every figure that has a target."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = [row for row in rows if row.figure.target is not None and row.ratio]
    factors = [row.ratio if row.figure.more_is_better else 1 / row.ratio for row in shown]
    names = [f"{row.section}: {row.name} ({row.figure.unit})" for row in shown]
    figure, axes = pyplot.subplots(figsize=(11, 0.27 * len(shown) + 1.2))
    colours = ["#2a9d8f" if factor >= 1 else "#e76f51" for factor in factors]
    axes.barh(range(len(shown)), [factor - 1 for factor in factors], color=colours, left=1)
    axes.axvline(1, color="#333333", linewidth=1)
    axes.set_xscale("log")
    axes.set_yticks(range(len(shown)), names, fontsize=7.5)
    axes.invert_yaxis()
    axes.margins(y=0.01)
    axes.set_xlim(min([0.5, *factors]) * 0.9, max(factors) * 1.6)
    ticks = [tick for tick in (0.5, 1, 2, 3, 5, 10, 20, 50) if tick <= max(factors) * 1.6]
    axes.set_xticks(ticks, [f"{tick:g}x" for tick in ticks])
    axes.minorticks_off()
    for place, factor in enumerate(factors):
        axes.text(max(factor, 1) * 1.03, place, f"{factor:.1f}x", va="center", fontsize=7)
    axes.set_title("trilogue, times better than Apache Kafka 4.3.1 on the same machine", fontsize=10)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=110, bbox_inches="tight")
    pyplot.close(figure)


def as_json(rows: Sequence[Row], facts: Sequence[Fact], grown: Sequence[Grown], known: dict[str, Any]) -> str:
    told = [
        {
            "section": row.section,
            "name": row.name,
            "unit": row.figure.unit,
            "ours": row.ours,
            "theirs": row.theirs,
            "ratio": round(row.ratio, 3),
            "target": row.figure.target,
            "verdict": row.verdict,
        }
        for row in rows
    ]
    return json.dumps(
        {
            **known,
            "rows": told,
            "alone": [each._asdict() for each in facts],
            "growth": [each._asdict() for each in grown],
        },
        indent=1,
    )


NOTES = "<!-- notes: by hand, kept by `make bench` -->"


def notes(path: Path) -> str:
    """What was written by hand below the tables."""
    _, mark, rest = path.read_text().partition(NOTES) if path.exists() else ("", "", "")
    return f"\n{mark}{rest}" if mark else ""


def write(rows: Sequence[Row], facts: Sequence[Fact], grown: Sequence[Grown], rounds: int, folder: Path) -> None:
    known = about(rounds)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "performance.json").write_text(as_json(rows, facts, grown, known) + "\n")
    page = folder / "performance.md"
    page.write_text(markdown(rows, facts, grown, known) + notes(page))
    if any(row.figure.target is not None for row in rows):
        plot(rows, folder / "performance.png")
    print(f"written: {folder}/performance.md, .json and .png", file=sys.stderr)
