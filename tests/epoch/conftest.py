"""What tests of epochs have in common."""

from __future__ import annotations

import pytest

from evert.epoch.job import Job


@pytest.fixture
def jobs(monkeypatch):
    """The jobs that were run. One that fails is run again by Spark alone, which would hide a fault."""
    seen = []
    run = Job.run

    def noted(self, folder, epoch):
        seen.append(self)
        return run(self, folder, epoch)

    monkeypatch.setattr(Job, "run", noted)
    return seen
