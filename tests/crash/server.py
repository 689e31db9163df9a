"""Runs the workload again and again, each time in a forked child with a fault of its own.

Started under the shim by `Faulty`: one start of Python and Arrow serves hundreds of crashes. Reads one JSON
object a line (the shim's settings, the folder, the file to speak to) and answers with the child's exit status.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import traceback
from pathlib import Path

from tests.crash.workload import say_to, work


def child(task: dict[str, str]) -> None:
    os.environ.update({name: value for name, value in task.items() if name.startswith("EVERT_FAULT")})
    ctypes.CDLL(None).evert_fault_begin()
    say = say_to(Path(task["said"]))
    try:
        work(Path(task["folder"]), say)
    except BaseException:
        say("raised " + traceback.format_exc().replace("\n", " | "))
        os._exit(3)
    os._exit(0)


def main() -> None:
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            child(json.loads(line))
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
