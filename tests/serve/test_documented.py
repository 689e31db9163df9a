"""The commands of the guide are answered with what stands behind them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.missing import skip_unless
from tests.serve.serving import serving

import evert

GUIDE = (Path(__file__).parents[2] / "docs" / "serve.md").read_text()
EXAMPLE = re.compile(r"^(curl (?:.*\\\n)*.*)\n# (.*)$", re.M)
REVENUE = (
    "SELECT country, sum(amount) AS revenue FROM orders JOIN customers c ON customer = c.id GROUP BY country"
)


@pytest.fixture(scope="module")
def shop(spark, tmp_path_factory):
    with evert.open(tmp_path_factory.mktemp("documented") / "shop.evert") as db:
        db.stream("orders", "id BIGINT, customer BIGINT, amount DECIMAL(10,2)")
        db.table("customers", "id BIGINT, country STRING", key="id")
        db.topic("customers").upsert([{"id": 1, "country": "CH"}, {"id": 2, "country": "DE"}])
        for number in (15, 16):
            db.topic("orders").append({"id": number, "customer": 2, "amount": "5.00"})
        db.view("revenue", REVENUE, key="country")
        db.refresh()
        yield db


def test_every_curl_is_answered_as_the_guide_says(shop):
    skip_unless(None if shutil.which("curl") else "no curl on the path")
    examples = EXAMPLE.findall(GUIDE)
    assert len(examples) == 3
    with serving(shop) as client:
        for command, answer in examples:
            local = command.replace("localhost:8000", f"localhost:{client.base_url.port}")
            ran = subprocess.run(["bash", "-c", f"{local} -sS"], capture_output=True, text=True, timeout=60)
            said = re.escape(answer).replace("…", ".*")
            assert re.fullmatch(said, ran.stdout.strip()), f"{command}\n{ran.stdout}{ran.stderr}"
            shop.refresh()
