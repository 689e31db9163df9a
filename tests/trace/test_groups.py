"""Groups of equal rows against comparing all pairs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.trace.columns import tables, types

from evert.trace import groups
from evert.trace.arrays import arrays_of
from evert.trace.groups import Groups, groups_of
from evert.trace.keys import same_rows
from evert.trace.order import total_codes


@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from([64, 3]), st.sampled_from([0, groups.DENSE]))
def test_rows_are_in_one_group_if_and_only_if_they_are_exactly_equal(data, bits, dense):
    kinds = data.draw(st.lists(types, max_size=3))
    table = data.draw(tables(kinds, 12)).combine_chunks()
    columns = arrays_of(table, [f"c{n}" for n in range(len(kinds))])
    count = table.num_rows
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups, "DENSE", dense)
        found = groups_of(columns, count, bits=bits)
    left, right = (each.reshape(-1) for each in np.meshgrid(np.arange(count), np.arange(count)))
    equal = same_rows(columns, left, columns, right, exact=True)
    assert ((found.of_row[left] == found.of_row[right]) == equal).all()
    assert sorted(found.of_row[found.first]) == list(range(len(found)))
    assert all(row <= at for at, row in enumerate(found.first[found.of_row]))


@given(st.lists(st.sampled_from(["a", "b", "", None]), min_size=1), st.data())
def test_text_that_is_a_dictionary_is_grouped_by_its_values(texts, data):
    """Values may be in a dictionary twice, and in it without being used."""
    values = pa.array(["a", "b", "", "a", "unused"])
    places = [None if one is None else data.draw(st.sampled_from(_places(one))) for one in texts]
    late = pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), values)
    plain = groups_of([pa.array(texts)], len(texts))
    found = groups_of([late], len(texts))
    assert found.first[found.of_row].tolist() == plain.first[plain.of_row].tolist()


@pytest.mark.parametrize("kind", [pa.dictionary(pa.int32(), pa.string()), pa.string(), pa.int64(), pa.null()])
def test_rows_of_nothing_but_null_are_one_group(kind):
    found = groups_of([pa.nulls(3, kind), pa.array([1, 1, 1])], 3)
    assert (found.of_row.tolist(), found.first.tolist()) == ([0, 0, 0], [0])
    assert total_codes(pa.nulls(3, kind)).tolist() == [0, 0, 0]


def _places(text: str) -> list[int]:
    return {"a": [0, 3], "b": [1], "": [2]}[text]


def test_many_wide_columns_do_not_overflow_what_they_are_packed_into():
    random = np.random.default_rng(1)
    numbers = [random.integers(-(2**62), 2**62, 500) for _ in range(12)]
    doubled = [pa.array(np.concatenate([column, column])) for column in numbers]
    found = groups_of(doubled, 1000)
    assert len(found) == 500
    assert (found.of_row[:500] == found.of_row[500:]).all()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-(2**40), 2**40)), min_size=1, max_size=30))
def test_groups_add_up_and_choose_like_python(pairs):
    keys, values = (np.array(each) for each in zip(*pairs, strict=True))
    found = groups_of([pa.array(keys)], len(keys))
    members = [
        [int(v) for g, v in zip(found.of_row, values, strict=True) if g == n] for n in range(len(found))
    ]
    assert found.sums(values).tolist() == [sum(each) for each in members]
    assert found.least(values, 2**62).tolist() == [min(each) for each in members]
    rows = np.flatnonzero(values > 0)
    firsts = [[at for at in rows if found.of_row[at] == n] for n in range(len(found))]
    assert found.first_of(rows, -1).tolist() == [each[0] if each else -1 for each in firsts]


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=30),
    st.sampled_from([1, 7, 10**6, 2**60, 2**61]),
    st.sampled_from([0, 1]),
)
def test_numbers_in_even_steps_are_told_apart_by_their_steps_and_others_too(pairs, step, odd):
    """Whether all of them are multiples or only those that were looked at first."""
    numbers = [step * pair[0] + odd * (at > 2) for at, pair in enumerate(pairs)]
    others = [1000 * pair[1] for pair in pairs]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups, "SAMPLE", 2)
        found = groups_of([pa.array(numbers), pa.array(others)], len(pairs))
    rows = list(zip(numbers, others, strict=True))
    assert [rows[at] for at in found.first[found.of_row]] == rows
    assert len(found) == len(set(rows))


def test_neighbours_are_groups_from_start_to_start():
    found = Groups.in_order(np.array([0, 2, 3]), 5)
    assert found.of_row.tolist() == [0, 0, 1, 2, 2]
    assert found.sums(np.array([1, 2, 3, 4, 5])).tolist() == [3, 3, 9]
