"""The next Spark: a small round through everything on a version newer than the one that is installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.missing import skip_unless

VERSION = "4.3.0"
SERVERS = Path(__file__).resolve().parents[2] / ".servers"
SCRIPT = """
import json, sys
import pyspark
import evert

with evert.open(sys.argv[1], background=False) as db:
    orders = db.stream("orders", "id BIGINT, customer BIGINT, amount DECIMAL(10,2)")
    customers = db.table("customers", "id BIGINT, country STRING", key="id")
    customers.upsert([{"id": 1, "country": "CH"}, {"id": 2, "country": "DE"}])
    orders.append([{"id": 10, "customer": 1, "amount": 3}, {"id": 11, "customer": 2, "amount": 4}])
    revenue = db.view(
        "revenue",
        "SELECT country, count(*) AS n, sum(amount) AS s FROM orders JOIN customers ON customer = customers.id"
        " GROUP BY country",
    )
    ranking = "SELECT id, row_number() OVER (ORDER BY id) AS place FROM orders"
    ranked = db.view("ranked", ranking)
    again = db.view("ranked_again", ranking, refresh="full")
    db.refresh()
    before = db.position
    customers.upsert({"id": 1, "country": "DE"})
    db.refresh()
    told = {
        "spark": pyspark.__version__,
        "rows": [(row["country"], row["n"], str(row["s"])) for row in revenue.rows()],
        "changes": sorted(
            (row["country"], row["n"], row["_weight"])
            for change in revenue.changes(after=before)
            for row in change.rows.to_pylist()
        ),
        "ranked": [sorted((row["id"], row["place"]) for row in view.rows()) for view in (ranked, again)],
        "recomputes": [db.explain(view.name).recomputes is not None for view in db.views.values()],
        "proved": [proof.holds for proof in db.prove()],
    }
print(json.dumps(told))
"""


def fetched() -> tuple[Path, str | None]:
    """The folder of the newer PySpark, fetched once; or why it cannot be had."""
    target = SERVERS / f"pyspark-{VERSION}"
    if target.is_dir():
        return target, None
    SERVERS.mkdir(exist_ok=True)
    part = Path(tempfile.mkdtemp(dir=SERVERS, prefix=f"pyspark-{VERSION}.part-"))
    command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps"]
    try:
        done = subprocess.run(
            [*command, "--target", str(part), f"pyspark=={VERSION}"],
            capture_output=True,
            text=True,
            timeout=280,
        )
        if done.returncode:
            return target, f"pip cannot fetch PySpark {VERSION}: {done.stderr.strip()[-300:]}"
        part.rename(target)
    except subprocess.TimeoutExpired:
        return target, f"pip did not fetch PySpark {VERSION} in time"
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return target, None


@pytest.mark.timeout(600)
def test_views_are_kept_recomputed_and_proved_on_a_newer_spark(tmp_path):
    folder, missing = fetched()
    skip_unless(missing)
    environment = os.environ | {"PYTHONPATH": str(folder)}
    environment.pop("SPARK_HOME", None)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "db")],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "spark": VERSION,
        "rows": [["DE", 2, "7.00"]],
        "changes": [["CH", 1, -1], ["DE", 1, -1], ["DE", 2, 1]],
        "ranked": [[[10, 1], [11, 2]]] * 2,
        "recomputes": [False, True, True],
        "proved": [True, True, True],
    }
