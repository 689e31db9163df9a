"""What a test needs and the machine may not have."""

from __future__ import annotations

import os

import pytest


def skip_unless(reason: str | None) -> None:
    """Skip the test and say why if something is missing; in CI, where nothing may be missing, fail."""
    if reason is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"missing in CI: {reason}")
        pytest.skip(reason)
