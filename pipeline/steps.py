"""Steps as Spark's transformations.

First those that look at single records (`judged`): they carry bad records along, marked, so that these can become dead
letters.  Then the others (`shaped`), which see only good ones: a bad record's time must not move a watermark.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from trilogue.pipeline.decode import first_line
from trilogue.pipeline.errors import PipelineError
from trilogue.pipeline.model import (
    BY_ROW,
    Aggregate,
    AnyStep,
    Dedupe,
    Derive,
    Expect,
    Filter,
    Join,
    Select,
    Watermark,
    Window,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

GOOD = "__error IS NULL"


def split(steps: Sequence[AnyStep]) -> int:
    """How many of the first steps look at single records."""
    return next((i for i, step in enumerate(steps) if not isinstance(step, BY_ROW)), len(steps))


def judged(rows: "DataFrame", steps: Sequence[AnyStep]) -> "DataFrame":
    for number, step in enumerate(steps[: split(steps)], 1):
        with blaming(number, step):
            rows = judge(rows, step)
    return rows


def shaped(rows: "DataFrame", steps: Sequence[AnyStep], inputs: Mapping[str, "DataFrame"]) -> "DataFrame":
    """`rows` have passed `judged`; only the good ones are left."""
    first = split(steps)
    late = False
    for number, step in enumerate(steps[first:], first + 1):
        with blaming(number, step):
            rows = shape(rows, step, inputs, late)
        late = late or isinstance(step, Watermark)
    return rows


@contextmanager
def blaming(number: int, step: AnyStep) -> Iterator[None]:
    """Spark's complaint about a step, with the step's place in the file."""
    from pyspark.errors import AnalysisException, ParseException

    try:
        yield
    except (AnalysisException, ParseException) as error:
        kind = type(step).__name__.lower()
        raise PipelineError(f"[[steps]] number {number} ({kind}): {first_line(error)}") from None


# -- single records --------------------------------------------------------------------------------


def judge(rows: "DataFrame", step: AnyStep) -> "DataFrame":
    from pyspark.sql import functions as F

    if isinstance(step, Select):
        kept = [name for name in rows.columns if name.startswith("_")]
        return rows.select(*(if_good(text).alias(name) for name, text in step.columns.items()), *kept)
    if isinstance(step, Derive):
        for name, text in step.columns.items():
            rows = rows.withColumn(name, if_good(text))
        return rows
    if isinstance(step, Filter):
        return rows.where(F.when(F.expr(GOOD), F.expr(step.where)).otherwise(F.lit(True)))
    assert isinstance(step, Expect)
    said = F.lit(f"expect: {step.name or step.that}")
    wrong = F.when(F.coalesce(F.expr(step.that), F.lit(False)), F.lit(None)).otherwise(said)
    return rows.withColumn("__error", F.when(F.expr(GOOD), wrong).otherwise(F.col("__error")))


def if_good(text: str) -> "Column":
    """Bad records are not calculated with: they might divide by their zeros."""
    from pyspark.sql import functions as F

    return F.when(F.expr(GOOD), F.expr(text))


# -- many records ----------------------------------------------------------------------------------


def shape(rows: "DataFrame", step: AnyStep, inputs: Mapping[str, "DataFrame"], late: bool) -> "DataFrame":
    from pyspark.sql import functions as F

    if isinstance(step, Watermark):
        return rows.withWatermark(step.column, step.delay)
    if isinstance(step, Aggregate):
        return aggregate(rows, step)
    if isinstance(step, Join):
        taken = [F.expr(text).alias(name) for name, text in step.take.items()]
        joined = rows.alias("stream").join(inputs[step.with_].alias(step.with_), F.expr(step.on), step.how)
        return joined.select("stream.*", *taken)
    if isinstance(step, Dedupe):
        return rows.dropDuplicatesWithinWatermark(step.keys) if late else rows.dropDuplicates(step.keys)
    if isinstance(step, Select):
        kept = [name for name in rows.columns if name.startswith("_")]
        return rows.select(*(F.expr(text).alias(name) for name, text in step.columns.items()), *kept)
    if isinstance(step, Derive):
        for name, text in step.columns.items():
            rows = rows.withColumn(name, F.expr(text))
        return rows
    assert isinstance(step, Filter)
    return rows.where(step.where)


def aggregate(rows: "DataFrame", step: Aggregate) -> "DataFrame":
    from pyspark.sql import functions as F

    values = [F.expr(text).alias(name) for name, text in step.values.items()]
    if step.window is None:
        return rows.groupBy(*step.by).agg(*values)
    found = rows.groupBy(windowed(step.window).alias("__window"), *step.by).agg(*values)
    ends = [F.col("__window.start").alias("window_start"), F.col("__window.end").alias("window_end")]
    return found.select(*ends, *step.by, *(F.col(name) for name in step.values))


def windowed(found: Window) -> "Column":
    from pyspark.sql import functions as F

    if found.gap:
        return F.session_window(found.column, found.gap)
    assert found.size is not None
    return F.window(found.column, found.size, found.slide)
