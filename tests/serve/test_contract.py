"""The server keeps what its OpenAPI document promises, whatever is sent to it."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import checks
from tests.serve.serving import serving


@pytest.fixture(scope="module")
def described(shop):
    with serving(shop) as client:
        yield schemathesis.openapi.from_url(f"{client.base_url}/openapi.json")


schema = schemathesis.pytest.from_fixture("described")


@schema.exclude(path_regex="/changes$").parametrize()
@settings(max_examples=10, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_answers_are_as_described(case):
    case.call_and_validate(checks=[checks.not_a_server_error, *_checks()])


def _checks():
    from schemathesis.specs.openapi import checks as openapi

    return [
        openapi.status_code_conformance,
        openapi.content_type_conformance,
        openapi.response_schema_conformance,
    ]
