"""Columns that change: what still fits into the table that is there."""

import pytest

from trilogue.pipeline.evolution import Fit, common, fit, in_sql, other_folders, partition_columns


def struct(**fields):
    return {
        "type": "struct",
        "fields": [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in fields.items()],
    }


def array(kind):
    return {"type": "array", "elementType": kind, "containsNull": True}


@pytest.mark.parametrize(
    ("old", "new", "both"),
    [
        ("integer", "integer", "integer"),
        ("integer", "long", "long"),
        ("long", "short", "long"),
        ("integer", "float", "double"),
        ("integer", "double", "double"),
        ("long", "double", None),
        ("float", "double", "double"),
        ("string", "double", None),
        ("double", "string", None),
        ("date", "timestamp", None),
        ("void", "string", "string"),
        ("decimal(5,2)", "decimal(9,2)", "decimal(9,2)"),
        ("decimal(5,2)", "decimal(5,4)", "decimal(7,4)"),
        ("decimal(38,0)", "decimal(38,1)", None),
        ("decimal(12,2)", "integer", "decimal(12,2)"),
        ("decimal(11,2)", "integer", "decimal(12,2)"),
        ("decimal(5,2)", "double", None),
        ("integer", "long_ish", None),
    ],
)
def test_the_type_that_holds_both(old, new, both):
    assert common(old, new) == both


def test_a_float_holds_no_integers_but_a_double_does():
    assert common("float", "integer") == "double"
    assert common("float", "long") is None


def test_what_is_inside_of_others_may_grow_and_not_change():
    assert common(struct(x="integer"), struct(x="integer", y="string")) == struct(x="integer", y="string")
    assert common(struct(x="integer", y="string"), struct(x="integer")) == struct(x="integer", y="string")
    assert common(array(struct(x="integer")), array(struct(y="date"))) == array(struct(x="integer", y="date"))
    assert common(struct(x="integer"), struct(x="long")) is None
    assert common(array("integer"), array("long")) is None
    assert common(array("integer"), "integer") is None
    many = {"type": "map", "keyType": "string", "valueType": "integer", "valueContainsNull": True}
    assert common(many, many) == many
    assert common(many, {**many, "keyType": "integer"}) is None


def test_new_columns_come_and_old_ones_stay_away():
    found, problems = fit({"a": "integer", "b": "string"}, {"a": "integer", "c": "date"})

    assert problems == []
    assert found == Fit(
        columns={"a": ("a", "integer"), "c": ("c", "date")},
        widened={},
        added={"c": "date"},
        grown={},
        schema={"a": "integer", "b": "string", "c": "date"},
    )


def test_a_wider_type_makes_the_table_wider_and_a_narrower_one_the_rows():
    found, problems = fit({"a": "integer", "b": "long"}, {"a": "long", "b": "integer"})

    assert problems == []
    assert found.widened == {"a": "long"}
    assert found.columns == {"a": ("a", "long"), "b": ("b", "long")}
    assert found.schema == {"a": "long", "b": "long"}


def test_what_gets_more_inside_needs_nothing_written_anew():
    found, problems = fit({"at": struct(x="integer")}, {"at": struct(x="integer", y="string")})

    assert problems == []
    assert found.grown == {"at": struct(x="integer", y="string")}
    assert found.widened == found.added == {}


def test_names_that_differ_in_large_and_small_letters_are_one_column():
    found, problems = fit({"Temp": "double"}, {"temp": "double"})

    assert problems == []
    assert found.columns == {"temp": ("Temp", "double")}
    assert found.added == {}


def test_what_cannot_be_read_together_is_refused_with_the_way_out():
    _, problems = fit({"temp": "double", "at": struct(x="long")}, {"temp": "string", "at": struct(x="string")})

    assert problems == [
        'column temp is DOUBLE there and would be STRING: keep it with a step (derive, temp = "CAST(temp AS DOUBLE)"), '
        "give it another name, or write to a new table",
        "column at is STRUCT<x: BIGINT> there and would be STRUCT<x: STRING>: "
        "give it another name, or write to a new table",
    ]


def test_types_as_people_write_them():
    many = {"type": "map", "keyType": "string", "valueType": array("byte"), "valueContainsNull": True}
    assert in_sql(many) == "MAP<STRING, ARRAY<TINYINT>>"
    assert in_sql("decimal(5,2)") == "DECIMAL(5,2)"


def test_folders_stay_what_they_are():
    assert partition_columns([]) is None
    assert partition_columns(["part-0.parquet"]) == []
    assert partition_columns(["day=1/country=at/part-0.parquet"]) == ["day", "country"]
    assert other_folders(None, ["day"]) is None
    assert other_folders(["day"], ["day"]) is None
    assert other_folders([], ["day"]) == (
        "the table is partitioned by nothing, and partition_by says day: undo that, or write to a new table"
    )
