"""The catalog's tables, as the steps that made them.

A folder's format is the number of steps it has taken. A new folder takes all of them, a folder of an older
version the ones it lacks, in one transaction. A step is never edited once released: a change is a new step.
"""

from __future__ import annotations

LOG = """
CREATE TABLE topics (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    folded TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    partitions INTEGER NOT NULL,
    options TEXT NOT NULL,
    schema INTEGER NOT NULL,
    created INTEGER NOT NULL,
    dropped INTEGER NOT NULL DEFAULT 0,
    gone INTEGER NOT NULL DEFAULT 0,
    deletes_gone INTEGER NOT NULL DEFAULT 0,
    replaced INTEGER NOT NULL DEFAULT 0,
    compacted INTEGER NOT NULL DEFAULT 0,
    compacted_rows INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE schemas (
    topic INTEGER NOT NULL, version INTEGER NOT NULL, ddl TEXT NOT NULL, PRIMARY KEY (topic, version)
);
CREATE TABLE offsets (
    topic INTEGER NOT NULL, "partition" INTEGER NOT NULL, first INTEGER NOT NULL, next INTEGER NOT NULL,
    PRIMARY KEY (topic, "partition")
);
CREATE TABLE tail (
    topic INTEGER NOT NULL,
    position INTEGER NOT NULL,
    at INTEGER NOT NULL,
    schema INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    spans TEXT NOT NULL,
    checksum INTEGER NOT NULL,
    file TEXT,
    start INTEGER,
    data BLOB,
    PRIMARY KEY (topic, position)
) WITHOUT ROWID;
CREATE INDEX tail_by_file ON tail (file) WHERE file IS NOT NULL;
CREATE TABLE segments (
    id INTEGER PRIMARY KEY,
    topic INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    schema INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    spans TEXT NOT NULL,
    stamped INTEGER NOT NULL,
    file TEXT NOT NULL UNIQUE,
    file_checksum INTEGER NOT NULL,
    checksum INTEGER NOT NULL
);
CREATE UNIQUE INDEX segments_by_position ON segments (topic, last);
CREATE TABLE announcements (file TEXT PRIMARY KEY, owner TEXT NOT NULL, until INTEGER NOT NULL);
CREATE TABLE garbage (file TEXT PRIMARY KEY, since INTEGER NOT NULL);
CREATE TABLE leases (name TEXT PRIMARY KEY, owner TEXT NOT NULL, token INTEGER NOT NULL, until INTEGER NOT NULL);
CREATE TABLE requests (
    producer TEXT NOT NULL, id TEXT NOT NULL, position INTEGER NOT NULL, digest BLOB NOT NULL, at INTEGER NOT NULL,
    PRIMARY KEY (producer, id)
);
CREATE INDEX requests_by_age ON requests (at);
CREATE TABLE holds (
    topic INTEGER NOT NULL, holder INTEGER NOT NULL, since INTEGER NOT NULL, upto INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    PRIMARY KEY (topic, holder)
);
CREATE TABLE producers (producer TEXT PRIMARY KEY, forgotten INTEGER NOT NULL);
"""

GROUPS = """
CREATE TABLE members (
    "group" TEXT NOT NULL, member TEXT NOT NULL, session TEXT NOT NULL, topics TEXT NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY ("group", member)
);
CREATE TABLE assignments (
    "group" TEXT NOT NULL, topic INTEGER NOT NULL, "partition" INTEGER NOT NULL,
    member TEXT NOT NULL, token INTEGER NOT NULL,
    PRIMARY KEY ("group", topic, "partition")
);
CREATE TABLE consumed (
    "group" TEXT NOT NULL, topic INTEGER NOT NULL, "partition" INTEGER NOT NULL,
    kind TEXT NOT NULL, next INTEGER NOT NULL, position INTEGER NOT NULL, at INTEGER NOT NULL,
    PRIMARY KEY ("group", topic, "partition")
);
CREATE TABLE generations ("group" TEXT PRIMARY KEY, generation INTEGER NOT NULL);
"""

QUEUES = """
CREATE TABLE deliveries (
    id INTEGER PRIMARY KEY,
    "group" TEXT NOT NULL,
    topic INTEGER NOT NULL,
    "partition" INTEGER NOT NULL,
    "offset" INTEGER NOT NULL,
    position INTEGER NOT NULL,
    at INTEGER NOT NULL,
    schema INTEGER NOT NULL,
    state TEXT NOT NULL,
    receipt TEXT NOT NULL,
    due INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    key TEXT NOT NULL,
    reason TEXT NOT NULL,
    data BLOB NOT NULL
);
CREATE UNIQUE INDEX deliveries_by_offset ON deliveries ("group", topic, "partition", "offset");
CREATE INDEX deliveries_by_due ON deliveries ("group", topic, state, due);
CREATE INDEX deliveries_by_key ON deliveries ("group", topic, key);
"""

VIEWS = """
CREATE TABLE views (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    folded TEXT UNIQUE,
    replaces INTEGER,
    feed INTEGER NOT NULL,
    kind TEXT NOT NULL,
    query TEXT NOT NULL,
    options TEXT NOT NULL,
    "group" TEXT NOT NULL,
    reads TEXT NOT NULL,
    columns BLOB,
    key TEXT,
    explanation TEXT NOT NULL,
    recomputes TEXT,
    fingerprint TEXT NOT NULL,
    state TEXT NOT NULL,
    position INTEGER NOT NULL,
    at INTEGER NOT NULL,
    error TEXT,
    created INTEGER NOT NULL,
    held INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE earlier (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    folded TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    query TEXT NOT NULL,
    options TEXT NOT NULL,
    position INTEGER NOT NULL,
    at INTEGER NOT NULL
);
CREATE INDEX earlier_by_name ON earlier (folded, id);
CREATE TABLE states (id INTEGER PRIMARY KEY AUTOINCREMENT);
CREATE TABLE nodes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    view INTEGER NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    state INTEGER NOT NULL,
    UNIQUE (view, name)
);
CREATE INDEX nodes_by_state ON nodes (state);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    node INTEGER NOT NULL,
    trace TEXT NOT NULL,
    shard INTEGER NOT NULL,
    file TEXT NOT NULL,
    start INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    checksum INTEGER NOT NULL
);
CREATE INDEX runs_by_node ON runs (node, shard);
CREATE INDEX runs_by_file ON runs (file);
CREATE TABLE changes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    feed INTEGER NOT NULL,
    kind TEXT NOT NULL,
    position INTEGER NOT NULL,
    at INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    file TEXT,
    data BLOB
);
CREATE INDEX changes_by_position ON changes (feed, position, kind);
CREATE INDEX changes_by_file ON changes (file) WHERE file IS NOT NULL;
CREATE TABLE epochs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    "group" TEXT NOT NULL,
    shown INTEGER NOT NULL,
    after INTEGER NOT NULL,
    upto INTEGER NOT NULL,
    at INTEGER NOT NULL,
    micros INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    changed INTEGER NOT NULL
);
CREATE INDEX epochs_by_group ON epochs ("group", upto);
CREATE TABLE bases (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    topic INTEGER NOT NULL,
    after INTEGER NOT NULL,
    upto INTEGER NOT NULL,
    columns TEXT NOT NULL,
    rows INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    file TEXT NOT NULL
);
CREATE INDEX bases_by_topic ON bases (topic, after);
CREATE INDEX bases_by_file ON bases (file);
CREATE TABLE engine (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""

PROFILES = """
ALTER TABLE epochs ADD COLUMN profile TEXT;
"""

TIME = """
CREATE TABLE floors (topic INTEGER PRIMARY KEY, floor INTEGER NOT NULL);
CREATE TABLE sources (
    topic INTEGER NOT NULL,
    source TEXT NOT NULL,
    mark INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    idle INTEGER NOT NULL,
    events INTEGER NOT NULL,
    late INTEGER NOT NULL,
    dropped INTEGER NOT NULL,
    PRIMARY KEY (topic, source)
);
CREATE INDEX sources_by_mark ON sources (topic, idle, mark);
CREATE INDEX sources_by_time ON sources (topic, idle, seen);
CREATE TABLE watermarks (
    topic INTEGER NOT NULL,
    position INTEGER NOT NULL,
    value INTEGER NOT NULL,
    PRIMARY KEY (topic, position)
);
"""

TICKS = """
CREATE TABLE ticks (position INTEGER PRIMARY KEY, at INTEGER NOT NULL);
CREATE TABLE corrections (
    topic INTEGER NOT NULL, position INTEGER NOT NULL, events INTEGER NOT NULL, PRIMARY KEY (topic, position)
);
"""

CLOCKS = """
CREATE TABLE clocks (
    topic INTEGER NOT NULL, device TEXT NOT NULL, state BLOB NOT NULL, PRIMARY KEY (topic, device)
);
"""

VERSIONS = """
CREATE TABLE version_holds (topic INTEGER NOT NULL, holder INTEGER NOT NULL, PRIMARY KEY (topic, holder));
"""

HORIZONS = """
CREATE TABLE horizons (
    topic INTEGER NOT NULL, position INTEGER NOT NULL, value INTEGER NOT NULL, PRIMARY KEY (topic, position)
);
"""

ACCESS = """
CREATE TABLE tokens (
    name TEXT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, scopes TEXT NOT NULL, created INTEGER NOT NULL
);
CREATE TABLE hooks (
    name TEXT PRIMARY KEY,
    topic TEXT NOT NULL,
    scheme TEXT NOT NULL,
    secret_env TEXT NOT NULL,
    created INTEGER NOT NULL
);
"""

STEPS = (LOG, GROUPS, QUEUES, VIEWS, PROFILES, TIME, TICKS, CLOCKS, VERSIONS, HORIZONS, ACCESS)
FORMAT = len(STEPS)
