"""What tasks tell the driver arrives as it was, short or long."""

from __future__ import annotations

import pytest

from evert.epoch.receipt import SHORT, tell, told


@pytest.mark.parametrize("size", [0, 10, SHORT, 300_000])
def test_what_is_told_is_heard(tmp_path, size):
    said = [{"bytes": bytes(range(256)) * (size // 256)}, ("n1", -1)]
    text = tell(tmp_path, "one.said", said).decode("ascii")
    assert told(tmp_path, text) == said
    assert len(text) <= 2 * SHORT
    assert len(list(tmp_path.iterdir())) == (size >= SHORT)
