"""The shop, living on behind its page until somebody ends it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from evert.database import open as open_database
from evert.demo.keeping import Keeper
from evert.demo.life import PHONE, STEP, Shop
from evert.demo.story import SPEED
from evert.serve.process import bound, hosts_of, serve
from evert.serve.server import Limits

ROUND = 240
"""After so many steps, a minute, everything happens again."""


def live(folder: Path, port: int, say: Callable[[str], None]) -> None:
    """Serve the shop on this machine, and let it live, until interrupted."""
    with open_database(folder) as db, bound("127.0.0.1", port) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        say("Starting Spark and defining the shop ...")
        keeper = Keeper(folder)
        over = threading.Event()
        try:
            keeper.wait("defined")
            shop = Shop(db)
            shop.open()
            keeper.order("go")
            life = threading.Thread(target=_live, args=(shop, keeper, over, say))
            life.start()
            serve(
                db,
                listener,
                hosts_of("127.0.0.1", ()),
                Limits(),
                keep=False,
                ready=lambda: say(f"\nThe shop is open: {url}   (Ctrl-C closes it)\n"),
            )
        finally:
            over.set()
            keeper.end()


def _live(shop: Shop, keeper: Keeper, over: threading.Event, say: Callable[[str], None]) -> None:
    """A minute of ours, again and again: the phone goes offline and comes back, and the processor pauses."""
    number, due = 0, time.monotonic()
    while not over.is_set():
        at = number % ROUND
        if at == ROUND // 4:
            shop.offline = True
            say(f"  {shop.at:%H:%M}  {PHONE} has lost its connection")
        elif at == ROUND // 2:
            say(
                f"  {shop.at:%H:%M}  {PHONE} is back with {shop.come_back()} late requests: see what they correct"
            )
        elif at == ROUND * 3 // 4:
            say(f"  {shop.at:%H:%M}  the processor pauses: see that request_rate has no spike after it")
            keeper.order("pause")
        elif at == ROUND * 3 // 4 + 24:
            keeper.order("go")
        shop.step()
        number += 1
        due = max(due + STEP.total_seconds() / SPEED, time.monotonic() - 1.0)
        over.wait(max(0.0, due - time.monotonic()))
