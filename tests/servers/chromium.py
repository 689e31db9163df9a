"""A real browser: the machine's Chromium, installed with apt where there is none and that is allowed.

reason = chromium.available()
if reason is None:
    with chromium.browser() as browser:
        browser.new_page().goto("http://127.0.0.1:8000")
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


@cache
def available() -> str | None:
    """Why there is no browser here, or None if there is one."""
    if _found() is not None:
        return None
    if shutil.which("apt-get") is None:
        return "no Chromium on the path, and no apt-get to install it with"
    if os.geteuid() != 0:
        return "no Chromium on the path; apt-get install chromium needs root"
    for command in (("update",), ("install", "-y", "--no-install-recommends", "chromium")):
        ran = subprocess.run(
            ["apt-get", "-q", *command], capture_output=True, text=True, timeout=900, env=QUIET
        )
    if _found() is None:
        return f"apt-get install chromium failed: {ran.stderr.strip()[-300:]}"
    return None


def _found() -> str | None:
    return next((path for path in map(shutil.which, NAMES) if path), None)


@contextmanager
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=_found(), args=list(FLAGS))
        yield opened
        opened.close()
