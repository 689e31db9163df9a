"""The page in a real browser: it loads, follows the views, marks corrections, and comes back after a restart."""

from __future__ import annotations

import re
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
from playwright.sync_api import expect
from tests.missing import skip_unless
from tests.serve.serving import serving
from tests.servers import chromium

import evert

SOON = 20_000
"""Milliseconds: nothing here takes so long, unless the machine is very busy."""
BY_MINUTE = "SELECT window(at, '1 minute') AS window, count(*) AS orders FROM orders GROUP BY 1"
MINUTE = re.compile("09:02.*09:03")
TOTALS = "SELECT country, sum(amount) AS total FROM orders GROUP BY country"


@pytest.fixture(scope="module")
def browser():
    skip_unless(chromium.available())
    with chromium.browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def shop(spark, tmp_path_factory):
    with evert.open(tmp_path_factory.mktemp("page") / "shop.evert") as db:
        db.stream(
            "orders",
            "country STRING, amount DECIMAL(10,2), at TIMESTAMP",
            event_time="at",
            lateness="1 minute",
            comment="What is bought",
        )
        db.view("totals", TOTALS, key="country", comment="What each country has spent")
        db.view("by_minute", BY_MINUTE, comment="Orders by the minute")
        for minute in range(10):
            order(db, "CH", 10, minute)
        db.refresh()
        yield db


@pytest.fixture(scope="module")
def url(shop):
    with serving(shop) as client:
        yield str(client.base_url)


@pytest.fixture
def page(browser):
    with opened(browser) as page:
        yield page


@contextmanager
def opened(browser, **how):
    """A page that must not have any error of its own when it is closed."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **how})
    page = context.new_page()
    wrong = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    yield page
    context.close()
    assert [one for one in wrong if not one.startswith("Failed to load resource")] == []


def order(db, country, amount, minute):
    at = datetime(2026, 6, 1, 9, minute, 30, tzinfo=UTC)
    db.topic("orders").append({"country": country, "amount": amount, "at": at})


def live(page):
    expect(page.get_by_test_id("connection")).to_have_text("live", timeout=SOON)


def row(page, start):
    return page.get_by_test_id("rows").locator("tbody tr:not(.gone)").filter(has_text=start)


def test_the_overview_draws_topics_views_and_what_reads_what(page, url):
    page.goto(url)
    live(page)
    for name in ("orders", "totals", "by_minute"):
        expect(page.get_by_test_id(f"node-{name}")).to_be_visible(timeout=SOON)
    assert page.locator("svg.edges path.way").count() == 2
    expect(page.get_by_text("What each country has spent")).to_be_visible()
    page.get_by_test_id("node-totals").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("rows")).to_be_visible(timeout=SOON)
    expect(row(page, "CH")).to_contain_text("100.00")


def test_rows_follow_the_view(page, url, shop):
    page.goto(f"{url}/#/view/totals")
    live(page)
    expect(row(page, "CH")).to_have_count(1, timeout=SOON)
    order(shop, "NZ", 77, 10)
    shop.refresh()
    expect(row(page, "NZ")).to_contain_text("77.00", timeout=SOON)


def test_a_straggler_shows_as_a_correction_in_table_and_chart(page, url, shop):
    page.goto(f"{url}/#/view/by_minute")
    live(page)
    expect(page.get_by_test_id("chart")).to_be_visible(timeout=SOON)
    expect(row(page, MINUTE)).to_have_count(1, timeout=SOON)
    assert page.get_by_test_id("corrected").count() == 0
    order(shop, "CH", 10, 2)
    shop.refresh()
    corrected = row(page, MINUTE).filter(has=page.get_by_test_id("corrected"))
    expect(corrected).to_have_count(1, timeout=SOON)
    expect(corrected).to_contain_text("2")
    expect(page.get_by_test_id("chart").locator("g.marks > *")).to_have_count(1, timeout=SOON)


def test_it_comes_back_after_a_restart_and_shows_what_it_missed(browser, shop):
    with opened(browser) as page:
        with serving(shop) as client:
            port = client.base_url.port
            page.goto(f"{client.base_url}/#/view/totals")
            live(page)
            expect(row(page, "CH")).to_have_count(1, timeout=SOON)
        expect(page.get_by_test_id("connection")).to_have_text(re.compile("reconnecting"), timeout=SOON)
        order(shop, "AU", 5, 11)
        shop.refresh()
        assert row(page, "AU").count() == 0
        with serving(shop, port=port):
            live(page)
            expect(row(page, "AU")).to_contain_text("5.00", timeout=SOON)


def test_a_question_is_answered_and_a_wrong_one_says_what_is_wrong(page, url):
    page.goto(f"{url}/#/ask")
    live(page)
    page.locator("textarea").fill("SELECT sum(orders) AS all_orders FROM by_minute WHERE orders > 0")
    page.get_by_test_id("ask-run").click()
    expect(page.get_by_test_id("ask-result")).to_contain_text("all_orders", timeout=SOON)
    page.locator("textarea").fill("SELECT * FROM by_minut")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_test_id("ask-result").or_(page.get_by_role("alert")).first).to_contain_text(
        "by_minut", timeout=SOON
    )


@pytest.mark.parametrize("where", ["", "#/view/by_minute", "#/topic/orders", "#/ask"])
def test_on_a_phone_nothing_is_wider_than_the_screen(browser, url, where):
    with opened(browser, viewport={"width": 360, "height": 700}, color_scheme="dark") as page:
        page.goto(f"{url}/{where}")
        live(page)
        expect(page.locator("main h1")).to_be_visible(timeout=SOON)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_server_with_tokens_asks_for_one(browser, tmp_path):
    with evert.open(tmp_path / "closed.evert") as db:
        db.stream("orders", "id BIGINT")
        token = db.tokens.create("page", read=["*"])
        with serving(db) as client, browser.new_context() as context:
            page = context.new_page()
            page.goto(str(client.base_url))
            page.locator("form.token input").fill("wrong")
            page.get_by_role("button", name="Open").click()
            expect(page.get_by_text("The token was not accepted.")).to_be_visible(timeout=SOON)
            page.locator("form.token input").fill(token)
            page.get_by_role("button", name="Open").click()
            expect(page.get_by_test_id("node-orders")).to_be_visible(timeout=SOON)
