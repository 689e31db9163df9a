"""Who may call what, from where: a matrix of all endpoints and all kinds of tokens, made of their table."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import time

import pytest
from tests.serve.serving import bearer, serving

from evert import errors
from evert.access import Token
from evert.serve.guard import SECURITY
from evert.serve.server import ENDPOINTS

NAMES = {"topic": "orders", "view": "revenue", "hook": "github"}
TOKENS = {
    "admin": {"admin": True},
    "appender": {"append": ["ord*"]},
    "reader": {"read": ["orders", "revenue"]},
    "stranger": {"append": ["other"], "read": ["other"]},
}


@pytest.fixture(scope="module")
def guarded(shop):
    made = {name: shop.tokens.create(name, **scopes) for name, scopes in TOKENS.items()}
    with serving(shop) as client:
        yield client, made
    for name in TOKENS:
        shop.tokens.revoke(name)


def opens(kind, needs):
    """What the matrix should say: whether a kind of token is let through to an endpoint."""
    verb = needs[0]
    if verb == "nobody" or (verb == "any" and kind is not None):
        return True
    return kind == "admin" or (kind, verb) in (("appender", "append"), ("reader", "read"))


@pytest.mark.parametrize("kind", [None, "wrong", *TOKENS])
@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda one: f"{one.method} {one.path}")
def test_every_endpoint_with_every_token(guarded, endpoint, kind):
    client, made = guarded
    headers = {} if kind is None else bearer(made.get(kind, "evert_wrong"))
    drops = (endpoint.method, endpoint.path) == ("DELETE", "/topics/{topic}")
    path = endpoint.path.format(**NAMES | ({"topic": "nothing"} if drops else {}))
    with client.stream(endpoint.method, path, headers=headers) as response:
        status = response.status_code
    known = kind if kind in TOKENS else None
    if opens(known, endpoint.needs):
        assert status not in (401, 403)
    else:
        assert status == (403 if known else 401)


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("path", sorted({one.path for one in ENDPOINTS}))
def test_methods_that_a_path_has_not_are_refused(guarded, path, method):
    client, made = guarded
    if any(one.path == path and one.method == method for one in ENDPOINTS):
        return
    answer = client.request(method, path.format(**NAMES), headers=bearer(made["admin"]))
    assert (answer.status_code, answer.json()["error"]) == (405, "wrong_method")
    assert answer.headers["Allow"]


def test_answers_show_only_what_a_token_may_read(guarded):
    client, made = guarded
    reader, stranger = bearer(made["reader"]), bearer(made["stranger"])
    status = client.get("/status", headers=reader).json()
    assert [one["name"] for one in status["topics"]] == ["orders"]
    assert [one["name"] for one in status["views"]] == ["revenue"]
    assert client.get("/topics", headers=stranger).json() == {"topics": []}
    secret = {"sql": "SELECT * FROM customers"}
    assert client.post("/ask", json=secret, headers=reader).json()["error"] == "unknown_relation"
    inner = {"where": "country IN (SELECT country FROM customers)"}
    assert client.get("/views/revenue", params=inner, headers=reader).status_code == 400
    writes = {"writes": [{"topic": "orders", "rows": []}, {"topic": "customers", "rows": []}]}
    assert client.post("/transactions", json=writes, headers=bearer(made["appender"])).status_code == 403


def test_a_token_is_kept_as_a_hash_and_ends_at_once(db, caplog):
    token = db.tokens.create("web", read=["*"])
    with caplog.at_level(logging.DEBUG), serving(db) as client:
        assert client.get("/topics", headers=bearer(token)).status_code == 200
        assert client.get("/topics", headers={"Authorization": f"Basic {token}"}).status_code == 401
        with db.__class__(db.path, create=False, clock=None, config=db.config) as other:
            other.tokens.revoke("web")
            other.tokens.create("other", admin=True)
        assert client.get("/topics", headers=bearer(token)).status_code == 401
    assert token not in caplog.text
    assert token not in (db.path / "catalog.sqlite").read_bytes().decode("latin-1", "replace")
    with pytest.raises(errors.NotFound):
        db.tokens.revoke("web")
    with pytest.raises(errors.Refused):
        db.tokens.create("other", admin=True)
    with pytest.raises(errors.BadOption):
        db.tokens.create("nothing")
    with pytest.raises(errors.BadName):
        db.tokens.create("")


def test_wildcards_and_case():
    token = Token("web", ("append:shop.*", "read:Revenue"))
    assert token.may("append", "shop.orders")
    assert token.may("read", "revenue")
    assert not token.may("read", "shop.orders")
    assert not token.may("append", "revenue")
    assert not token.may("admin")


def test_requests_by_another_name_or_from_another_page_are_refused(db):
    with serving(db) as client:
        port = client.base_url.port
        for host in ("127.0.0.1", f"localhost:{port}", f"[::1]:{port}"):
            assert client.get("/health", headers={"Host": host}).status_code == 200
        for host in ("shop.example", f"127.0.0.1.shop.example:{port}", "[::", "user@localhost@evil"):
            assert client.get("/health", headers={"Host": host}).status_code in (400, 421)
        own = {"Host": f"localhost:{port}", "Origin": f"http://localhost:{port}"}
        assert client.get("/health", headers=own).status_code == 200
        for origin in ("http://shop.example", "null", f"http://localhost:{port + 1}"):
            answer = client.post("/topics/orders", json={"id": 1}, headers=own | {"Origin": origin})
            assert answer.status_code == 403
        page = client.get("/")
        assert all(page.headers[name] == value for name, value in SECURITY.items())
        for name in ("../server.py", "..%2fserver.py", "nothing.js"):
            assert client.get(f"/page/{name}").status_code == 404
    assert db.position == 0


def signed(scheme, secret, body, at):
    """The headers by which a service proves itself."""
    plain = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    if scheme == "github":
        return {"X-Hub-Signature-256": f"sha256={plain}", "X-GitHub-Event": "push", "X-GitHub-Delivery": "d1"}
    if scheme == "stripe":
        stamped = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
        return {"Stripe-Signature": f"t={at},v0=x,v1={stamped}"}
    if scheme == "standard":
        key = base64.b64decode(secret.removeprefix("whsec_"))
        made = hmac.new(key, f"msg_1.{at}.".encode() + body, hashlib.sha256).digest()
        signature = f"v1,wrong v1,{base64.b64encode(made).decode()}"
        return {"Webhook-Id": "msg_1", "Webhook-Timestamp": str(at), "Webhook-Signature": signature}
    return {"Signature": plain}


@pytest.mark.parametrize("scheme", ["github", "stripe", "standard", "hex"])
def test_a_webhook_takes_what_is_signed_once(db, monkeypatch, scheme):
    secret = "whsec_" + base64.b64encode(b"quite a secret").decode()
    monkeypatch.setenv("HOOK_SECRET", secret)
    db.hooks.create("calls", scheme=scheme, secret_env="HOOK_SECRET")
    body, now = json.dumps({"action": "opened"}).encode(), int(time.time())
    right = signed(scheme, secret, body, now)
    with serving(db) as client:
        for _ in range(2):  # a delivery that comes again is kept once
            assert client.post("/hooks/calls", content=body, headers=right).json()["position"] == 1
        wrong = [{}, signed(scheme, "whsec_" + base64.b64encode(b"another").decode(), body, now)]
        if scheme in ("stripe", "standard"):
            wrong.append(signed(scheme, secret, body, now - 1_000))
        for headers in wrong:
            assert client.post("/hooks/calls", content=body, headers=headers).status_code == 401
        assert client.post("/hooks/calls", content=body + b" ", headers=right).status_code == 401
        assert client.post("/hooks/none", content=body, headers=right).status_code == 404
        monkeypatch.delenv("HOOK_SECRET")
        assert client.post("/hooks/calls", content=body, headers=right).status_code == 400
    (row,) = [row for batch in db.topic("calls").read() for row in batch.to_pylist()]
    assert row["body"] == body.decode()
    assert row["event"] == ("push" if scheme == "github" else None)


def test_hooks_are_listed_and_dropped(db):
    db.hooks.create("calls", stream="reports", scheme="hex", secret_env="SECRET")
    assert [(hook.name, hook.topic) for hook in db.hooks.all()] == [("calls", "reports")]
    for wrong in (
        {"name": "calls", "scheme": "hex", "secret_env": "SECRET"},
        {"name": "a/b", "scheme": "hex", "secret_env": "SECRET"},
        {"name": "new", "scheme": "none", "secret_env": "SECRET"},
        {"name": "new", "scheme": "hex", "secret_env": "A SECRET"},
    ):
        with pytest.raises(errors.Refused):
            db.hooks.create(wrong.pop("name"), **wrong)
    db.hooks.drop("calls")
    with pytest.raises(errors.NotFound):
        db.hooks.drop("calls")
    assert "reports" in db.topics
