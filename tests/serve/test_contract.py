"""The server keeps what its OpenAPI document promises, whatever is sent to it."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks
from tests.serve.serving import serving

from evert.serve.server import ENDPOINTS

CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]


@pytest.fixture(scope="module")
def described(shop):
    with serving(shop) as client:
        yield schemathesis.openapi.from_url(
            f"{client.base_url}/openapi.json".replace("//openapi", "/openapi")
        )


@pytest.mark.parametrize(
    "endpoint",
    [one for one in ENDPOINTS if not one.path.endswith("/changes")],
    ids=lambda one: f"{one.method} {one.path}",
)
def test_answers_are_as_described(described, endpoint):
    operation = described[endpoint.path][endpoint.method]

    @settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy())
    def holds(case):
        case.validate_response(case.call(), checks=CHECKS)

    holds()
