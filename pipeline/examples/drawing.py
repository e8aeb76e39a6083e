"""What the examples' pictures share: reading a table, and one look for all."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trilogue.pipeline import reading
from trilogue.pipeline.spark import session

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pyspark.sql import SparkSession

COLOURS = ["#33658a", "#e08e45", "#6a994e", "#a23b72"]

Draw = Callable[[Sequence[Any], Path], None]


def rows_of(spark: "SparkSession", toml: Path) -> list[Any]:
    """What an example's table holds."""
    pipeline = reading.read(toml)
    sink: Any = pipeline.sinks[0]
    kind = type(sink).__name__.lower()
    return list(spark.read.format(kind).load(pipeline.place(sink.path)).collect())


def quiet(axes: "Axes", title: str) -> None:
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=9)


def main(toml: Path, draw: Draw) -> None:
    out = Path(sys.argv[1] if len(sys.argv) > 1 else f"{toml.parent.name}.png")
    spark = session(reading.read(toml))
    try:
        draw(rows_of(spark, toml), out)
    finally:
        spark.stop()
    print(out)
