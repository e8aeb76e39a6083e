"""Records into rows: the columns of the value, where the record came from, and what is wrong with it.

Every record becomes a row.  `__error` says why a row cannot be used, and is null where it can; `__record` is the record
as it came, for the dead letters.  Columns that begin with one underscore are for expressions, and are not written.
"""

from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from trilogue.pipeline.errors import PipelineError
from trilogue.pipeline.model import Decode, Pipeline

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

CORRUPT = "__corrupt"
CONFLUENT_BYTES = 5
"""What Confluent's serialisers put before a value: a zero, and the number of its schema."""
SHOWN_SCHEMA_CHARS = 200


def schema_text(pipeline: Pipeline, decode: Decode) -> str | None:
    if decode.schema_file is None:
        return decode.schema
    path = Path(pipeline.place(decode.schema_file))
    try:
        return path.read_text()
    except OSError as error:
        raise PipelineError(f"{pipeline.file}: [decode]: `schema_file`: {path}: {error.strerror}") from None


def rows(records: "DataFrame", decode: Decode, schema: str | None) -> "DataFrame":
    from pyspark.sql import functions as F

    key = F.col("key").cast("string") if decode.key == "text" else F.col("key")
    about = [
        key.alias("_key"),
        *(F.col(name).alias(f"_{name}") for name in ("topic", "partition", "offset", "timestamp", "headers")),
        F.col("value").isNull().alias("_tombstone"),
        F.struct("key", "value", "topic", "partition", "offset", "timestamp", "headers").alias("__record"),
    ]
    if decode.format in ("text", "raw"):
        value = F.col("value").cast("string") if decode.format == "text" else F.col("value")
        wrong = F.lit(None).cast("string")
        if decode.format == "text":
            wrong = F.when(~F.is_valid_utf8(value), F.lit("decode: not UTF-8"))
        return records.select(value.alias("value"), *about, wrong.alias("__error"))
    assert schema is not None
    parsed, wrong, names = json(schema) if decode.format == "json" else avro(schema, decode.framing)
    marked = records.withColumn("__parsed", once(parsed))
    columns = [F.col(f"__parsed.`{name}`").alias(name) for name in names]
    return marked.select(*columns, *about, F.when(F.col("value").isNotNull(), wrong).alias("__error"))


def once(parsed: "Column") -> "Column":
    """Spark moves filters down and copies into them what they refer to: every value would be parsed four times.

    What depends on where it is computed is not copied, so this seems to.
    """
    from pyspark.sql import functions as F

    return F.when(F.spark_partition_id() >= 0, parsed)


def struct_of(schema: str) -> "StructType":
    from pyspark.errors import ParseException
    from pyspark.sql.types import StructType

    try:
        found = StructType.fromDDL(schema)
    except ParseException as error:
        raise PipelineError(f"[decode]: `schema`: {first_line(error)}") from None
    if not isinstance(found, StructType):
        raise PipelineError(f"[decode]: `schema`: columns are needed, such as `id BIGINT, name STRING`, not {schema!r}")
    return found


def json(schema: str) -> "tuple[Column, Column, list[str]]":
    """How to parse it, what is wrong with what was parsed, and its columns."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, StructField, StructType

    struct = struct_of(schema)
    text = F.col("value").cast("string")
    with_corrupt = StructType([*struct.fields, StructField(CORRUPT, StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    shown = " ".join(schema.split())
    shown = shown if len(shown) <= SHOWN_SCHEMA_CHARS else f"{shown[:SHOWN_SCHEMA_CHARS]} ..."
    wrong = F.when(~F.is_valid_utf8(text), F.lit("decode: not UTF-8"))
    corrupt = F.col("__parsed").isNull() | F.col(f"__parsed.{CORRUPT}").isNotNull()
    wrong = wrong.when(corrupt, F.lit(f"decode: not JSON of the schema {shown}"))
    for each in struct.fields:
        if not each.nullable:
            wrong = wrong.when(F.col(f"__parsed.`{each.name}`").isNull(), F.lit(f"decode: `{each.name}` is missing"))
    return F.from_json(text, with_corrupt, options), wrong, struct.names


def avro(schema: str, framing: str) -> "tuple[Column, Column, list[str]]":
    """A record all of whose fields are null cannot be told from one that cannot be read."""
    from pyspark.sql import functions as F
    from pyspark.sql.avro.functions import from_avro

    try:
        names = [str(each["name"]) for each in msgspec.json.decode(schema)["fields"]]
    except (msgspec.DecodeError, KeyError, TypeError):
        raise PipelineError("[decode]: `schema`: not an Avro record, as JSON with `fields`") from None
    value: Column = F.col("value")
    unframed = F.lit(False)
    if framing == "confluent":
        head = F.hex(F.substring(value, 1, 1))
        unframed = (F.length(value) <= CONFLUENT_BYTES) | (head != "00")
        value = F.expr(f"substring(value, {CONFLUENT_BYTES + 1})")
    empty = reduce(lambda one, other: one & other, [F.col(f"__parsed.`{name}`").isNull() for name in names])
    wrong = F.when(unframed, F.lit("decode: not framed as Confluent does it"))
    wrong = wrong.when(F.col("__parsed").isNull() | empty, F.lit("decode: not Avro of the schema"))
    return from_avro(value, schema, {"mode": "PERMISSIVE"}), wrong, names


def inferred(session: "SparkSession", sample: "DataFrame") -> str:
    """The schema that Spark sees in a sample of JSON; nothing to see is an error."""
    from pyspark.sql.types import StructType

    jvm: Any = session._jvm
    texts = sample.where("value IS NOT NULL").selectExpr("CAST(value AS STRING)")._jdf
    strings = getattr(texts, "as")(jvm.org.apache.spark.sql.Encoders.STRING())
    seen = session._jsparkSession.read().json(strings).schema().json()
    found = StructType.fromJson(msgspec.json.decode(seen))
    known = [each for each in found.fields if each.name != "_corrupt_record"]
    if not known:
        raise PipelineError("[decode]: no schema is given, and there is no JSON in the topics to infer it from")
    return ", ".join(f"`{each.name}` {each.dataType.simpleString()}" for each in known)


def first_line(error: Exception) -> str:
    """Of Spark's long messages, what a person needs."""
    text = str(error).strip().split("\n")[0]
    return text.split(" SQLSTATE")[0].strip()
