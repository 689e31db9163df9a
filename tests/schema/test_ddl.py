"""Reading Spark's text form of a column list."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.schema.random_schemas import schemas

from evert.errors import BadName, BadSchema
from evert.schema.ddl import parse_columns
from evert.schema.schema import Schema
from evert.schema.types import Array, Atom, Column, Decimal, Interval, Map, Struct, Text, Time


@given(schemas)
def test_the_canonical_text_parses_back_to_an_equal_schema(schema: Schema) -> None:
    assert Schema.parse(schema.ddl()) == schema


def test_a_full_example_is_read() -> None:
    text = """session STRING NOT NULL COMMENT 'x', -- who
      at timestamp, /* several /* nested */ kinds */
      items ARRAY<STRUCT<sku: STRING, n INT NOT NULL COMMENT "how many">>,
      `odd ``name` MAP<STRING, DECIMAL(10,2)>, total: BIGINT"""
    assert parse_columns(text) == (
        Column("session", Text(), False, "x"),
        Column("at", Atom("TIMESTAMP")),
        Column(
            "items",
            Array(Struct((Column("sku", Text()), Column("n", Atom("INT"), False, "how many")))),
        ),
        Column("odd `name", Map(Text(), Decimal(10, 2))),
        Column("total", Atom("BIGINT")),
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("byte", Atom("TINYINT")),
        ("Short", Atom("SMALLINT")),
        ("INTEGER", Atom("INT")),
        ("LONG", Atom("BIGINT")),
        ("REAL", Atom("FLOAT")),
        ("DEC", Decimal(10, 0)),
        ("NUMERIC(3)", Decimal(3, 0)),
        ("DECIMAL(38, 38)", Decimal(38, 38)),
        ("CHARACTER(3)", Text("CHAR", 3)),
        ("VARCHAR(9)", Text("VARCHAR", 9)),
        ("STRING COLLATE unicode_ci", Text(collation="UNICODE_CI")),
        ("STRING COLLATE system.builtin.UNICODE", Text(collation="UNICODE")),
        ("STRING COLLATE UTF8_BINARY", Text()),
        ("TIME", Time(6)),
        ("TIME(3) WITHOUT TIME ZONE", Time(3)),
        ("TIMESTAMP_LTZ", Atom("TIMESTAMP")),
        ("TIMESTAMP WITH LOCAL TIME ZONE", Atom("TIMESTAMP")),
        ("TIMESTAMP WITHOUT TIME ZONE", Atom("TIMESTAMP_NTZ")),
        ("INTERVAL DAY TO SECOND", Interval()),
        ("INTERVAL HOUR", Interval("HOUR", "HOUR")),
        ("INTERVAL minute to second", Interval("MINUTE", "SECOND")),
        ("ARRAY<ARRAY<INT>>", Array(Array(Atom("INT")))),
        ("VOID", Atom("VOID")),
    ],
)
def test_every_word_for_a_type_is_known(text: str, kind: object) -> None:
    assert parse_columns("a " + text)[0].type == kind


@pytest.mark.parametrize(
    ("text", "comment"),
    [
        ("'it''s'", "it's"),
        (r"'it\'s'", "it's"),
        (r"'a\nb\\c'", "a\nb\\c"),
        (r"r'a\nb'", r"a\nb"),
        ("'a' 'b'", "ab"),
        (r"'\u00e9\101'", "éA"),
        ("'50\\%'", "50\\%"),
    ],
)
def test_comments_are_string_literals_of_spark(text: str, comment: str) -> None:
    assert parse_columns("a INT COMMENT " + text)[0].comment == comment


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no columns"),
        ("a", "expected a type, found the end"),
        ("a INT,", "expected a column name"),
        ("a INT b INT", "expected ',' or the end of the schema, found 'b'"),
        ("a INT DEFAULT 3", "found 'DEFAULT'"),
        ("123 INT", "expected a column name, found '123'"),
        ("a-b INT", "'-' has no meaning here"),
        ("é INT", "has no meaning here"),
        ("a CHAR", "CHAR needs a length"),
        ("a VARCHAR(0)", "can hold nothing"),
        ("a DECIMAL(39)", "1 to 38 digits"),
        ("a DECIMAL(5,6)", "more digits after the point"),
        ("a DECIMAL(10,-2)", "'-'"),
        ("a TIME(7)", "finer than microseconds"),
        ("a ARRAY<INT NOT NULL>", "NOT NULL cannot be said"),
        ("a STRUCT<>", "at least one field"),
        ("a ARRAY<INT", "expected '>'"),
        ("a INT /* oops", "never closed"),
        ("a INT COMMENT x", "expected the comment's text"),
        ("a INTERVAL SECOND TO DAY", "no TO after SECOND"),
        ("a INTERVAL HOUR TO DAY", "expected MINUTE or SECOND"),
        ("a INT,\n\n  b ARRAY[INT]", "line 3, character 10"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(text: str, said: str) -> None:
    with pytest.raises(BadSchema) as caught:
        parse_columns(text)
    assert said in caught.value.message


@pytest.mark.parametrize(
    "kind", ["INTERVAL YEAR TO MONTH", "INTERVAL MONTH", "INTERVAL", "VARIANT", "GEOMETRY", "OBJECT"]
)
def test_a_type_that_arrow_cannot_carry_is_refused_with_a_way_out(kind: str) -> None:
    with pytest.raises(BadSchema) as caught:
        parse_columns(f"a STRUCT<b: ARRAY<{kind}>>")
    assert caught.value.details["column"] == "a.b.element"
    assert caught.value.hint


@pytest.mark.parametrize(("word", "meant"), [("STRNG", "STRING"), ("TEXT", "STRING"), ("bigin", "BIGINT")])
def test_an_unknown_type_comes_with_the_one_that_was_meant(word: str, meant: str) -> None:
    with pytest.raises(BadSchema) as caught:
        parse_columns(f"a {word}")
    assert caught.value.hint == f"did you mean {meant}?"


@pytest.mark.parametrize("levels", [65, 200, 100_000])
def test_deep_nesting_is_refused_and_never_a_recursion_error(levels: int) -> None:
    with pytest.raises(BadSchema, match="deeper than 64"):
        parse_columns("a " + "ARRAY<" * levels + "INT" + ">" * levels)


def test_nesting_up_to_the_limit_works() -> None:
    schema = Schema.parse("a " + "ARRAY<" * 64 + "INT" + ">" * 64)
    assert Schema.parse(schema.ddl()) == schema


@pytest.mark.parametrize(
    "text",
    [
        "`` INT",
        "`a\tb` INT",
        "`a\x00` INT",
        "__w INT",
        "_Position BIGINT",
        "_deleted BOOLEAN",
        "a INT, A STRING",
        "`\u00e9` INT, `e\u0301` INT",
        "s STRUCT<x: INT, X: INT>",
        "s ARRAY<STRUCT<``: INT>>",
        "`" + "n" * 256 + "` INT",
    ],
)
def test_names_that_cannot_be_used_are_refused(text: str) -> None:
    with pytest.raises(BadName):
        Schema.parse(text)


def test_names_of_the_system_are_free_inside_a_struct() -> None:
    Schema.parse("s STRUCT<_offset: INT, __w: INT>, _mine INT")
