"""A file into a `Pipeline`.  What is wrong is said with the file, the table, the key, and what is allowed there."""

import re
import tomllib
import types
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec.structs import fields, replace

from trilogue.pipeline.errors import PipelineError
from trilogue.pipeline.model import (
    BY_ROW,
    Aggregate,
    Compaction,
    Delta,
    Expect,
    Input,
    Join,
    Parquet,
    Pipeline,
    Source,
    Table,
    Watermark,
)

AVAILABLE_NOW = "available-now"
INTERVAL = re.compile(r"\d+ (millisecond|second|minute|hour|day|week)s?")
NAME = re.compile(r"[A-Za-z0-9._-]+")
PROBLEM = re.compile(r"(?P<what>.*?)(?: - at `\$(?P<path>[^`]*)`)?", re.DOTALL)
KEY = re.compile(r"Object (?:contains unknown|missing required) field `(?P<key>[^`]*)`")


def read(path: Path) -> Pipeline:
    try:
        said = tomllib.loads(path.read_text())
    except OSError as error:
        raise PipelineError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PipelineError(f"{path}: not TOML: {error}") from None
    return parse(said, path)


def parse(said: dict[str, Any], path: Path) -> Pipeline:
    if "file" in said:
        raise PipelineError(f"{path}: unknown table [file]; allowed: {allowed_keys(Pipeline)}")
    try:
        found = replace(msgspec.convert(said, Pipeline), file=path)
    except msgspec.ValidationError as error:
        raise PipelineError(f"{path}: {explained(str(error), said)}") from None
    return agreed(found)


def agreed(found: Pipeline) -> Pipeline:
    """The same, if its tables go together."""
    try:
        agree(found)
    except Disagreement as error:
        raise PipelineError(f"{found.file}: {error}") from None
    return found


# -- what the types say ----------------------------------------------------------------------------


def explained(text: str, said: dict[str, Any]) -> str:
    """msgspec's complaint, in the words of the file."""
    match = PROBLEM.fullmatch(text)
    assert match is not None  # it matches anything
    what, path = match["what"], match["path"] or ""
    steps = re.findall(r"\.([^.\[\]]+)|\[(\d+)\]", path)
    trail: list[str | int] = [name or int(index) for name, index in steps]
    missing = KEY.match(what)
    if missing:
        kind = type_at(trail, said)
        verb = "unknown" if "unknown" in what else "missing"
        return f"{place(trail)}: {verb} key `{missing['key']}`; allowed: {allowed_keys(kind)}"
    *table, key = trail or [""]
    return f"{place(table)}: `{key}`: {what[:1].lower()}{what[1:]}{allowed_values(type_at(trail, said))}"


def place(trail: list[str | int]) -> str:
    """`$.steps[2].window` is `[[steps]] number 3, window`."""
    if not trail:
        return "at the top"
    first, *rest = trail
    words = f"[{first}]"
    if rest and isinstance(rest[0], int):
        words, rest = f"[[{first}]] number {rest[0] + 1}", rest[1:]
    return ", ".join([words, *map(str, rest)])


def type_at(trail: list[str | int], said: Any) -> Any:
    """The type that the model has for a place of the file, as far as the file leads there."""
    kind: Any = Pipeline
    for step in trail:
        meant = unwrapped(kind, said)
        kind = get_args(meant)[0] if isinstance(step, int) else member(meant, step)
        if isinstance(said, dict):
            said = said.get(str(step))
        elif isinstance(said, list) and isinstance(step, int):
            said = said[step]
    return unwrapped(kind, said) if isinstance(said, dict | list) else kind


def unwrapped(kind: Any, said: Any) -> Any:
    """The one member of a union that is meant: by its tag, or because the other is None."""
    if get_origin(kind) not in (Union, types.UnionType):
        return kind
    members = [each for each in get_args(kind) if each is not types.NoneType]
    tag = said.get("type") if isinstance(said, dict) else None
    return next((each for each in members if tag_of(each) == tag), members[0] if len(members) == 1 else kind)


def member(kind: Any, name: str) -> Any:
    if not (isinstance(kind, type) and issubclass(kind, Table)):
        return get_args(kind)[1] if get_origin(kind) is dict else kind
    if name == "type":
        return kind
    spelt = {each.encode_name: each.name for each in fields(kind)}
    return get_type_hints(kind)[spelt[name]]


def tag_of(kind: Any) -> str | None:
    config = getattr(kind, "__struct_config__", None)
    return str(config.tag) if config is not None and config.tag else None


def allowed_keys(kind: Any) -> str:
    names = [each.encode_name for each in fields(kind)] if isinstance(kind, type) and issubclass(kind, Table) else []
    return ", ".join(
        (["type"] if tag_of(kind) else []) + [name for name in names if (kind, name) != (Pipeline, "file")]
    )


def allowed_values(kind: Any) -> str:
    members = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    tags = [tag for tag in map(tag_of, members) if tag]
    literals = [str(value) for each in members if get_origin(each) is Literal for value in get_args(each)]
    found = tags or literals
    return f"; allowed: {', '.join(found)}" if found else ""


# -- what the tables say together ------------------------------------------------------------------


class Disagreement(Exception):
    pass


def demand(truth: object, table: str, complaint: str) -> None:
    if not truth:
        raise Disagreement(f"{table}: {complaint}")


def agree(found: Pipeline) -> None:
    """What types cannot say."""
    about = found.pipeline
    demand(NAME.fullmatch(about.name), "[pipeline]", "`name`: letters, digits, dots, dashes and underscores only")
    demand(about.checkpoint, "[pipeline]", "`checkpoint`: a folder is needed")
    interval(about.trigger, "[pipeline]", "trigger", AVAILABLE_NOW)
    source(found.source)
    demand(found.sinks, "at the top", "a pipeline needs at least one table [[sinks]]")
    bad = found.bad_records
    wants_topic = bad.action == "dead-letter"
    demand(
        bool(bad.topic) == wants_topic, "[bad_records]", "`topic` goes with `action` = dead-letter, and only with it"
    )
    decode(found.decode, "[decode]")
    names = [each.name for each in found.inputs]
    demand(len(set(names)) == len(names), "[[inputs]]", "`name`: each needs one of its own")
    for number, each in enumerate(found.inputs, 1):
        an_input(each, f"[[inputs]] number {number}")
    steps(found, names)
    sinks(found)


def source(found: Source) -> None:
    demand(bool(found.topics) != bool(found.pattern), "[source]", "either `topics` or `pattern` is needed, not both")
    demand(found.max_records is None or found.max_records > 0, "[source]", "`max_records`: at least 1")
    start(found.start, "[source]")
    strange = [name for name in found.options if name in TAKEN]
    demand(not strange, "[source]", f"`options`: {', '.join(strange)} has a key of its own in [source]")


TAKEN = {
    "subscribe", "subscribePattern", "assign", "kafka.bootstrap.servers", "startingOffsets", "startingTimestamp",
    "maxOffsetsPerTrigger", "failOnDataLoss", "includeHeaders", "kafka.isolation.level",
}  # fmt: skip
"""Options of Spark's source that the keys of [source] set."""


def start(said: str, table: str) -> None:
    if said not in ("earliest", "latest"):
        try:
            milliseconds(said)
        except ValueError:
            message = f"`start`: {said!r} is neither earliest, latest nor a time such as 2026-01-31T00:00:00Z"
            raise Disagreement(f"{table}: {message}") from None


def milliseconds(text: str) -> int:
    from datetime import UTC, datetime

    when = datetime.fromisoformat(text)
    return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000)


def interval(said: str, table: str, key: str, *others: str) -> None:
    allowed = " or ".join(["a number and a unit such as `10 seconds`", *others])
    demand(said in others or INTERVAL.fullmatch(said), table, f"`{key}`: {said!r} is not {allowed}")


def decode(found: Any, table: str) -> None:
    demand(not (found.schema and found.schema_file), table, "either `schema` or `schema_file`, not both")
    given = found.schema or found.schema_file
    demand(found.format != "avro" or given, table, "`format` = avro needs `schema` or `schema_file`")
    demand(found.format in ("json", "avro") or not given, table, f"`format` = {found.format} has no schema")
    demand(found.framing == "none" or found.format == "avro", table, "`framing` is for `format` = avro")


def an_input(found: Input, table: str) -> None:
    demand(re.fullmatch(r"[A-Za-z_]\w*", found.name), table, "`name`: a plain word, as SQL expressions will say it")
    demand(found.name != "stream", table, "`name`: stream is what joins call the pipeline's own rows")
    demand(bool(found.topics) != bool(found.path), table, "either `topics` or `path` is needed, not both")
    demand(not found.path or not found.watermark, table, "`watermark` is for `topics`")
    start(found.start, table)
    decode(found.decode, f"{table}, decode")
    if found.watermark:
        interval(found.watermark.delay, f"{table}, watermark", "delay")


def steps(found: Pipeline, inputs: list[str]) -> None:
    rows_only, late = True, False
    for number, step in enumerate(found.steps, 1):
        table = f"[[steps]] number {number}"
        rows_only = rows_only and isinstance(step, BY_ROW)
        if isinstance(step, Expect):
            message = "an expect step comes before watermark, aggregate, join and dedupe: it judges single records"
            demand(rows_only, table, message)
        elif isinstance(step, Watermark):
            interval(step.delay, table, "delay")
            late = True
        elif isinstance(step, Join):
            known = ", ".join(inputs) or "none: there is no table [[inputs]]"
            demand(step.with_ in inputs, table, f"`with`: no input is named {step.with_!r}; there are {known}")
        elif isinstance(step, Aggregate):
            window(step, table)
            ends = late and step.window is not None
            message = "with `output` = append it needs a window, and a watermark step before it: else it never ends"
            demand(ends or found.pipeline.output == "update", table, message)


def window(step: Aggregate, table: str) -> None:
    demand(step.values, table, "`values`: at least one")
    found = step.window
    if found is None:
        return
    where = f"{table}, window"
    demand(bool(found.size) != bool(found.gap), where, "either `size` (fixed or sliding) or `gap` (sessions) is needed")
    demand(not found.slide or found.size, where, "`slide` goes with `size`")
    for key in ("size", "slide", "gap"):
        if said := getattr(found, key):
            interval(said, where, key)


def sinks(found: Pipeline) -> None:
    places: set[str] = set()
    for number, sink in enumerate(found.sinks, 1):
        table = f"[[sinks]] number {number}"
        if isinstance(sink, Parquet | Delta):
            demand(sink.path not in places, table, f"`path`: another sink writes to {sink.path}")
            places.add(sink.path)
            upserts = isinstance(sink, Delta) and bool(sink.key)
            message = "`output` = update needs a sink that can change rows: a topic, the console, or delta with `key`"
            demand(found.pipeline.output == "append" or upserts, table, message)
        if isinstance(sink, Parquet) and isinstance(sink.compact, Compaction):
            compaction(sink.compact, table)
        if isinstance(sink, Delta):
            demand(not sink.delete_when or sink.key, table, "`delete_when` goes with `key`")


def compaction(found: Compaction, table: str) -> None:
    demand(found.files >= 2, f"{table}, compact", "`files`: at least 2")
    demand(found.target_mb >= 1, f"{table}, compact", "`target_mb`: at least 1")
