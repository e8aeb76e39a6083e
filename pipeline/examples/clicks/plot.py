"""The picture: when sessions begin, and how long they are."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trilogue.pipeline.examples.drawing import COLOURS, main, quiet

LONGEST_MINUTES = 30
BESIDE: Any = {"textcoords": "offset points", "ha": "right", "fontsize": 9}


def draw(rows: Sequence[Any], out: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.4), dpi=100, layout="constrained")
    left, right = figure.subplots(1, 2)
    stacks = (("left without buying", False, COLOURS[0]), ("bought", True, COLOURS[1]))

    floor = [0] * 24
    for label, bought, colour in stacks:
        hours = Counter(row.began.hour for row in rows if row.bought is bought)
        counts = [hours[hour] for hour in range(24)]
        left.bar(range(24), counts, bottom=floor, width=0.85, color=colour, label=f"{label}: {sum(counts)}")
        floor = [low + count for low, count in zip(floor, counts, strict=True)]
    quiet(left, f"{len(rows):,} sessions, by the hour they began")
    left.set_xticks(range(0, 24, 4), [f"{hour}:00" for hour in range(0, 24, 4)])
    left.legend(frameon=False, loc="upper left", fontsize=9)

    def minutes(bought: bool) -> list[float]:
        return [min(row.seconds / 60, LONGEST_MINUTES) for row in rows if row.bought is bought]

    lengths = [minutes(bought) for _, bought, _ in stacks]
    colours = [colour for _, _, colour in stacks]
    right.hist(lengths, bins=list(range(0, LONGEST_MINUTES + 1, 2)), stacked=True, color=colours, rwidth=0.9)
    right.set_xticks(range(0, LONGEST_MINUTES, 5))
    right.annotate(f"{LONGEST_MINUTES - 2} or more", (LONGEST_MINUTES, 0), xytext=(0, 30), **BESIDE)
    quiet(right, "How long they were, in minutes")
    figure.savefig(out)


if __name__ == "__main__":
    main(Path(__file__).with_name("pipeline.toml"), draw)
