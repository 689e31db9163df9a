"""The process that keeps the views beside a server: `evert run`, for as long as its parent lives."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

from evert.cli.main import evert

_LOOK = 1.0


def main() -> None:
    threading.Thread(target=_follow, args=(os.getppid(),), daemon=True).start()
    evert.main(["run", "--quiet", "--db", sys.argv[1]], prog_name="evert")


def _follow(parent: int) -> None:
    """A server that was killed cannot end us, so we end ourselves."""
    while os.getppid() == parent:
        time.sleep(_LOOK)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
