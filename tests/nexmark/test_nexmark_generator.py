"""The events of Nexmark follow its rules, whichever slice of them is made."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from evert.schema.schema import Schema
from evert.testing import nexmark
from evert.testing.nexmark import Config, events
from evert.testing.nexmark.draws import Draws
from evert.testing.nexmark.strings import words

MANY = 200_000


@pytest.fixture(scope="module")
def many():
    return events(0, MANY)


def share(condition):
    return pc.mean(condition.cast(pa.float64())).as_py()


def numbers(table, column):
    return table.column(column).to_numpy()


def test_of_fifty_events_one_is_a_person_three_are_auctions_and_the_rest_are_bids(many):
    assert [table.num_rows for table in many.tables().values()] == [
        MANY // 50,
        MANY * 3 // 50,
        MANY * 46 // 50,
    ]
    for first in range(50):
        assert [table.num_rows for table in events(first, 50).tables().values()] == [1, 3, 46]


@pytest.mark.parametrize("name", nexmark.SCHEMAS)
def test_the_types_are_those_of_spark(many, name):
    table = many.tables()[name]
    assert table.schema == nexmark.schema(name) == Schema.parse(nexmark.SCHEMAS[name]).arrow
    assert all(column.null_count == 0 for column in table.columns)
    table.validate(full=True)


@pytest.mark.parametrize("config", [Config(), Config(out_of_order=7), Config(persons=2, auctions=5, bids=9)])
@pytest.mark.parametrize("cuts", [(0, 1, 2, 53, 900, 70_000), (40_000, 70_000), (12_345, 12_346, 12_400)])
def test_a_slice_is_the_same_alone_and_as_part_of_more(config, cuts):
    whole = events(cuts[0], cuts[-1] - cuts[0], config).tables()
    parts = [events(start, end - start, config).tables() for start, end in pairwise(cuts)]
    for name, table in whole.items():
        assert pa.concat_tables([part[name] for part in parts]).equals(table)


def test_no_events_are_empty_tables():
    assert [table.num_rows for table in events(5, 0).tables().values()] == [0, 0, 0]
    assert events(5, 0).bid.schema == nexmark.schema("bid")


def test_another_seed_gives_other_events_of_the_same_ids(many):
    other = events(0, 10_000, Config(seed=2))
    for name in ("person", "auction"):
        mine, theirs = many.tables()[name].slice(0, len(other.tables()[name])), other.tables()[name]
        assert mine.column("id").equals(theirs.column("id"))
        assert not mine.column("extra").equals(theirs.column("extra"))
    prices = numbers(many.bid, "price")[: len(other.bid)]
    assert (prices == numbers(other.bid, "price")).mean() < 0.01


def test_ids_count_up_from_1000(many):
    for table in (many.person, many.auction):
        assert numbers(table, "id").tolist() == list(range(1000, 1000 + table.num_rows))


def test_times_go_with_the_number_of_the_event():
    config = Config(rate=1000, base_time=5_000)
    assert pc.cast(events(100, 50, config).person.column("dateTime"), pa.int64()).to_pylist() == [5_100_000]
    bids = pc.cast(events(0, 1000, config).bid.column("dateTime"), pa.int64()).to_pylist()
    assert bids[:2] == [5_004_000, 5_005_000]
    assert bids[-1] == 5_999_000


def test_an_auction_expires_within_twice_the_time_until_a_hundred_more_are_there():
    auction = events(0, 50_000, Config(rate=1000)).auction
    open_for = pc.cast(
        pc.subtract(auction.column("expires"), auction.column("dateTime")), pa.int64()
    ).to_numpy()
    assert open_for.min() >= 1_000
    assert open_for.max() <= 2 * 1_666_000
    assert abs(open_for.mean() - 1_666_000) < 50_000


def test_half_of_the_bids_go_to_the_hot_auction_and_most_come_from_the_hot_bidder(many):
    event = np.arange(MANY)
    event = event[event % 50 >= 4]
    hot_auction = 1000 + (event // 50 * 3 + 2) // 100 * 100
    hot_bidder = 1000 + event // 50 // 100 * 100 + 1
    assert abs((numbers(many.bid, "auction") == hot_auction).mean() - 0.504) < 0.01
    assert abs((numbers(many.bid, "bidder") == hot_bidder).mean() - 0.75) < 0.01
    latest = 1000 + event // 50 * 3 + 2
    assert abs((numbers(many.bid, "auction") > latest).mean() - 0.046) < 0.005
    assert (numbers(many.bid, "auction") <= latest + 10).all()
    assert (numbers(many.bid, "auction") >= latest - 200).all()
    assert (numbers(many.bid, "bidder") >= 1000).all()
    assert (numbers(many.bid, "bidder") <= 1000 + event // 50 + 10).all()


def test_most_auctions_are_of_the_hot_seller_who_is_not_the_hot_bidder(many):
    event = np.arange(MANY)
    event = event[(event % 50 >= 1) & (event % 50 < 4)]
    hot = 1000 + event // 50 // 100 * 100
    seller = numbers(many.auction, "seller")
    assert abs((seller == hot).mean() - 0.75) < 0.015
    assert (seller <= 1000 + event // 50 + 10).all()
    assert set(numbers(many.auction, "category").tolist()) == {10, 11, 12, 13, 14}


def test_flinks_bidders_are_a_thousand_higher(many):
    theirs = events(0, 1000, Config(bidders_apart=True)).bid
    assert (numbers(theirs, "bidder") == numbers(many.bid, "bidder")[: len(theirs)] + 1000).all()


def test_a_third_of_the_prices_is_in_each_two_powers_of_ten(many):
    price = many.bid.column("price")
    assert abs(share(pc.less(price, 10_000)) - 1 / 3) < 0.01
    assert abs(share(pc.greater_equal(price, 1_000_000)) - 1 / 3) < 0.01
    assert pc.min(price).as_py() >= 100
    assert pc.max(price).as_py() <= 100_000_000
    assert (numbers(many.auction, "reserve") >= numbers(many.auction, "initialBid") + 100).all()


def test_half_of_the_channels_are_hot_and_a_channel_has_one_url(many):
    channel = many.bid.column("channel")
    hot = pa.array(["Google", "Facebook", "Baidu", "Apple"])
    assert abs(share(pc.is_in(channel, hot)) - 0.5) < 0.01
    pairs = many.bid.group_by(["channel", "url"]).aggregate([])
    assert len(pairs) == len(pc.unique(channel))
    urls = dict(zip(*pairs.to_pydict().values(), strict=True))
    shape = r"https://www\.nexmark\.com/[a-z_]{3,4}/[a-z_]{3,4}/[a-z_]{3,4}/item\.htm\?query=1(&channel_id=(\d+))?"
    found = {name: re.fullmatch(shape, url) for name, url in urls.items()}
    assert all(found.values())
    with_id = {name: int(match[2]) for name, match in found.items() if match[2]}
    assert not set(with_id) & set(hot.to_pylist())
    assert abs(len(with_id) / len(urls) - 0.9) < 0.02
    assert {with_id.get(f"channel-{n}", value) for n, value in ((1, 1 << 31), (2, 1 << 30))} == {
        1 << 31,
        1 << 30,
    }


def test_texts_fill_rows_up_to_their_average_size(many):
    length = pc.binary_length(many.bid.column("extra"))
    assert (pc.min(length).as_py(), pc.max(length).as_py()) == (54, 81)
    for table, average in ((many.person, 200), (many.auction, 500)):
        texts = [column for column in table.columns if column.type == pa.string()]
        rows = sum(pc.binary_length(column).to_numpy().astype(int) for column in texts)
        assert abs(rows.mean() + 8 * (5 if table is many.auction else 1) - average) < 10
    letters = Counter("".join(many.bid.column("extra").slice(0, 5000).to_pylist()))
    assert set(letters) == set("abcdefghijklmnopqrstuvwxyz")
    assert max(letters.values()) / min(letters.values()) < 1.1


def test_persons_are_described_as_in_nexmark(many):
    for row in many.person.slice(0, 500).to_pylist():
        assert re.fullmatch(r"[A-Z][a-z]+ [A-Z][a-z]+", row["name"])
        assert re.fullmatch(r"[a-z ]{0,6}@[a-z ]{0,4}\.com", row["emailAddress"])
        assert re.fullmatch(r"\d{4} \d{4} \d{4} \d{4}", row["creditCard"])
        assert len(row["state"]) == 2
    assert len(pc.unique(many.person.column("name"))) == 99
    assert len(pc.unique(many.person.column("city"))) == 10
    assert len(pc.unique(many.person.column("state"))) == 6


def test_words_have_a_blank_in_thirteen_but_not_at_their_ends():
    made = words(Draws(np.arange(20_000), seed=3), 0, 20).to_pylist()
    assert all(word == word.strip() for word in made)
    assert {len(word) for word in made} >= set(range(1, 20))
    assert max(map(len, made)) == 19
    inner = "".join(word[1:-1] for word in made if len(word) > 10)
    assert abs(inner.count(" ") / len(inner) - 1 / 13) < 0.005


def test_events_that_come_out_of_order_are_the_same_events(many):
    shuffled = events(0, 1000, Config(out_of_order=10)).bid
    ordered = events(0, 1000).bid
    assert not shuffled.equals(ordered)
    order = [("dateTime", "ascending"), ("extra", "ascending")]
    assert shuffled.sort_by(order).equals(ordered.sort_by(order))


def test_a_config_is_a_value():
    assert replace(Config(), seed=2) == Config(seed=2)
    assert Config().round == 50


def test_the_side_input_has_numbers_and_themselves():
    assert nexmark.side_input(3).to_pydict() == {"key": [0, 1, 2], "value": [0, 1, 2]}


def test_there_are_24_queries_and_each_says_what_it_reads():
    assert list(nexmark.QUERIES) == [f"q{n}" for n in range(24)]
    for query in nexmark.QUERIES.values():
        found = re.findall(r"(?:FROM|JOIN|A,)\s+(person|auction|bid|side_input)\b", query.sql)
        assert set(found) == set(query.reads), query.name
