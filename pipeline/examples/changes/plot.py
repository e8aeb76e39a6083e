"""The picture: who is a customer now, and what the table was made from."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trilogue.pipeline.examples.changes import COUNTRIES, PLANS, records
from trilogue.pipeline.examples.drawing import COLOURS, main, quiet


def draw(rows: Sequence[Any], out: Path) -> None:
    from matplotlib.figure import Figure

    log = list(records())
    figure = Figure(figsize=(8, 3.4), dpi=100, layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.5])

    steps = {
        "changes\nin the log": len(log),
        "keys\never seen": len({each.key for each in log}),
        "rows\nin the table": len(rows),
    }
    bars = left.bar(list(steps), list(steps.values()), width=0.65, color=[COLOURS[1], COLOURS[2], COLOURS[0]])
    left.bar_label(bars, labels=[f"{count:,}" for count in steps.values()], fontsize=9, padding=2)
    quiet(left, "From log to table")
    left.yaxis.set_major_formatter("{x:,.0f}")
    left.set_ylim(0, len(log) * 1.15)

    floor = [0] * len(COUNTRIES)
    for plan, colour in zip(PLANS, COLOURS, strict=False):
        found = Counter(row.country for row in rows if row.plan == plan)
        counts = [found[country] for country in COUNTRIES]
        right.bar(COUNTRIES, counts, bottom=floor, width=0.65, color=colour, label=f"{plan}: {sum(counts)}")
        floor = [low + count for low, count in zip(floor, counts, strict=True)]
    quiet(right, "Customers now, by country and plan")
    right.set_ylim(0, max(floor) * 1.25)
    right.legend(frameon=False, ncols=3, loc="upper left", fontsize=9)
    figure.savefig(out)


if __name__ == "__main__":
    main(Path(__file__).with_name("pipeline.toml"), draw)
