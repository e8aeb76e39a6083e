"""The picture: revenue by day, the countries on top of each other."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trilogue.pipeline.examples.drawing import COLOURS, main, quiet


def draw(rows: Sequence[Any], out: Path) -> None:
    from matplotlib.dates import DateFormatter, WeekdayLocator
    from matplotlib.figure import Figure

    days = sorted({row.date for row in rows})
    revenue = {(row.date, row.country): float(row.revenue) for row in rows}
    totals = {country: sum(revenue.get((day, country), 0.0) for day in days) for _, country in revenue}
    figure = Figure(figsize=(8, 3.6), dpi=100, layout="constrained")
    axes = figure.subplots()
    floor = [0.0] * len(days)
    for country, colour in zip(sorted(totals, key=lambda each: -totals[each]), COLOURS, strict=False):
        heights = [revenue.get((day, country), 0.0) for day in days]
        label = f"{country}  {totals[country]:,.0f}"
        axes.bar(days, heights, bottom=floor, width=0.8, color=colour, label=label)
        floor = [low + height for low, height in zip(floor, heights, strict=True)]
    quiet(axes, "Revenue by day, in euros: days that are over")
    axes.xaxis.set_major_locator(WeekdayLocator(byweekday=0))  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_formatter(DateFormatter("Mon %d %b"))  # type: ignore[no-untyped-call]
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_ylim(0, max(floor) * 1.22)
    axes.legend(frameon=False, ncols=3, loc="upper left", fontsize=9)
    figure.savefig(out)


if __name__ == "__main__":
    main(Path(__file__).with_name("pipeline.toml"), draw)
