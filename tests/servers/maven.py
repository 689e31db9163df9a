"""Fetch Java programs with Maven, once, into `.servers/` at the project's root.

Nothing here names a repository: Maven asks its own `central`, or what the user's settings put in its place. A
folder appears under its final name only when it is complete, so a fetch that broke off is simply done again.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

SERVERS = Path(__file__).resolve().parents[2] / ".servers"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>evert.servers</groupId>
  <artifactId>{name}</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
DEPENDENCY = (
    "    <dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
)


class FetchError(Exception):
    """The server's programs cannot be had here; the message says why."""


def java() -> Path:
    """The `java` to run servers with: `JAVA_HOME`'s, else the one on the path."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")
    if found is None:
        raise FetchError(f"no java in JAVA_HOME={home}" if home else "no java on the path")
    return Path(found)


def java_version(executable: Path) -> int:
    """The feature release of a `java`: 17, 21, ..."""
    said = subprocess.run([executable, "-version"], capture_output=True, text=True, timeout=60)
    match = re.search(r'version "(\d+)', said.stderr + said.stdout)
    if said.returncode or match is None:
        raise FetchError(f"{executable} -version failed: {said.stderr.strip()[-300:]}")
    return int(match[1])


def fetch(name: str, artifacts: Sequence[str], *, timeout: float = 600) -> Path:
    """A folder with the jars of `artifacts` (`group:artifact:version`) and all they need at run time."""
    target = SERVERS / name
    if target.is_dir():
        return target
    mvn = shutil.which("mvn")
    if mvn is None:
        raise FetchError(f"{name} is not fetched yet, and there is no mvn on the path to fetch it with")
    SERVERS.mkdir(exist_ok=True)
    with _only_one(SERVERS / f"{name}.lock"):
        if target.is_dir():
            return target
        with tempfile.TemporaryDirectory(dir=SERVERS, prefix=f"{name}.part-") as part:
            jars = Path(part) / "jars"
            pom = Path(part) / "pom.xml"
            dependencies = "\n".join(DEPENDENCY.format(*artifact.split(":")) for artifact in artifacts)
            pom.write_text(POM.format(name=name, dependencies=dependencies))
            command = [mvn, "-q", "-B", f"-Dmaven.repo.local={part}/m2", "-f", str(pom), COPY]
            options = [f"-DoutputDirectory={jars}", "-DincludeScope=runtime"]
            try:
                done = subprocess.run(command + options, capture_output=True, text=True, timeout=timeout)
            except subprocess.TimeoutExpired:
                raise FetchError(f"mvn did not fetch {name} within {timeout:.0f} s") from None
            if done.returncode or not any(jars.glob("*.jar")):
                raise FetchError(f"mvn could not fetch {name}: {_gist(done.stdout + done.stderr)}")
            jars.rename(target)
    return target


def _gist(output: str) -> str:
    errors = [line for line in output.splitlines() if "ERROR" in line]
    return (errors[0] if errors else output.strip())[:400]


@contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
