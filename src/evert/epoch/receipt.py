"""What a task says of its work, and what it is told before it begins.

A *manifest* names, for one shard and epoch, each node's runs. A *receipt* names the runs that a node wrote and
those they replace. Tasks never open the catalog: both travel as bytes.
"""

from __future__ import annotations

import pickle
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evert.trace import Stored

SHORT = 4096
"""What a task says in more bytes than this is in a file."""

MARK = b"@"
"""How the name of such a file begins; it is no letter of base64."""


@dataclass(frozen=True)
class NodeRuns:
    """A node's state in one shard: its runs by the trace's name, newest first."""

    first: bool
    runs: Mapping[str, tuple[Stored, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Manifest:
    """What the tasks of one shard find."""

    folder: str
    epoch: str
    bits: int
    nodes: Mapping[int, NodeRuns]
    moments: Mapping[str, int] = field(default_factory=dict)
    """Where the clocks stand by which nodes forget."""

    def save(self, shard: int) -> None:
        Path(self.folder, name_of(self.epoch, shard)).write_bytes(pickle.dumps(self))

    @classmethod
    def load(cls, folder: str, epoch: str, shard: int) -> Manifest:
        manifest: Manifest = pickle.loads(Path(folder, name_of(epoch, shard)).read_bytes())
        return manifest


def name_of(epoch: str, shard: int) -> str:
    return f"{epoch}{shard}.manifest"


@dataclass(frozen=True)
class Published:
    """A piece of a view's delta: inside the receipt if it is small, else in a file that is already synced."""

    rows: int
    size: int
    checksum: int
    data: bytes | None
    file: str | None


@dataclass(frozen=True)
class Spent:
    """What a task did for a node: rows and bytes that came in, rows that came out, and its time.

    The node `SCAN` is reading what enters, and `PACK` packing what Spark has evaluated.
    """

    node: int
    rows_in: int
    rows_out: int
    bytes_in: int
    micros: int


SCAN, PACK = 0, -1


@dataclass(frozen=True)
class Receipt:
    """One node's work in one shard and epoch."""

    node: int
    shard: int
    added: tuple[tuple[str, Stored], ...]
    removed: tuple[int, ...]
    published: tuple[Published, ...]


def tell(folder: Path, name: str, said: Sequence[Any]) -> bytes:
    """What a task tells the driver, as text; in a file of this name if it is long.

    From the JVM bytes would come one by one, and more than fits a buffer waits for an acknowledgement on its way.
    """
    blob = pickle.dumps(said)
    if len(blob) <= SHORT:
        return b64encode(blob)
    Path(folder, name).write_bytes(blob)
    return MARK + name.encode()


def told(folder: Path, text: str) -> list[Any]:
    """What a task has told."""
    name = text.removeprefix(MARK.decode())
    blob = b64decode(text) if name == text else Path(folder, name).read_bytes()
    said: list[Any] = pickle.loads(blob)
    return said
