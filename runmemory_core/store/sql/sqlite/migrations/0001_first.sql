-- Every primary key starts with account_id. Times are milliseconds since 1970 in UTC.
-- account_id and run are small integers that stand for the names, because they are in every row.

-- "RunM": whose file this is.
PRAGMA application_id = 1383427661;

CREATE TABLE accounts (
    account_id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
);

-- Keys themselves are never kept: key_sha256 is the SHA-256 of the whole key.
CREATE TABLE api_keys (
    account_id INTEGER NOT NULL,
    key_id TEXT NOT NULL,
    key_sha256 BLOB NOT NULL UNIQUE,
    plan TEXT NOT NULL,
    label TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER,
    PRIMARY KEY (account_id, key_id)
) WITHOUT ROWID;

CREATE TABLE usage (
    account_id INTEGER NOT NULL,
    day TEXT NOT NULL,
    calls INTEGER NOT NULL,
    PRIMARY KEY (account_id, day)
) WITHOUT ROWID;

-- in_flight is a JSON list of announced steps. generation_seq is the seq at which the generation began:
-- checkpoints up to it belong to earlier ones. worked_ms adds up the gaps between saves of one attempt.
-- A deleted run stays as a tombstone: deleted_at is set and everything below it is gone.
CREATE TABLE runs (
    account_id INTEGER NOT NULL,
    run INTEGER NOT NULL,
    run_id TEXT NOT NULL,
    adapter TEXT,
    job TEXT,
    status TEXT NOT NULL,
    error TEXT,
    seq INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    generation_seq INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    last_body BLOB,
    in_flight TEXT,
    done_count INTEGER NOT NULL,
    worked_ms INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER,
    PRIMARY KEY (account_id, run),
    UNIQUE (account_id, run_id)
);

CREATE INDEX runs_by_status ON runs (account_id, status, run);

-- evicted_through is the greatest key (adapters) or seq (tools, as text) that retention removed.
CREATE TABLE lanes (
    account_id INTEGER NOT NULL,
    run INTEGER NOT NULL,
    lane INTEGER NOT NULL,
    name TEXT NOT NULL,
    evicted_through TEXT,
    PRIMARY KEY (account_id, run, lane),
    UNIQUE (account_id, run, name)
) WITHOUT ROWID;

-- Rows of a few KB live better in a rowid table, so the primary key is an index of its own.
-- key and parent are an adapter's names; NULL for the five tools. body holds the nodes of the state
-- (see parts.py) as JSON, compressed with zstd when that is smaller.
CREATE TABLE checkpoints (
    account_id INTEGER NOT NULL,
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    lane INTEGER NOT NULL,
    key TEXT,
    parent TEXT,
    step TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    saved_at INTEGER NOT NULL,
    removed TEXT,
    metadata TEXT,
    body BLOB NOT NULL,
    PRIMARY KEY (account_id, run, seq)
);

CREATE UNIQUE INDEX checkpoints_by_key ON checkpoints (account_id, run, lane, key) WHERE key IS NOT NULL;

-- Results of tasks, in one row those that came in one commit, in order of arrival; they may come before their checkpoint.
CREATE TABLE writes (
    account_id INTEGER NOT NULL,
    run INTEGER NOT NULL,
    lane INTEGER NOT NULL,
    key TEXT NOT NULL,
    n INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (account_id, run, lane, key, n)
) WITHOUT ROWID;

CREATE TABLE parts (
    account_id INTEGER NOT NULL,
    run INTEGER NOT NULL,
    address TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (account_id, run, address)
);

CREATE TABLE done (
    account_id INTEGER NOT NULL,
    run INTEGER NOT NULL,
    item TEXT NOT NULL,
    n INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    PRIMARY KEY (account_id, run, item)
) WITHOUT ROWID;

CREATE INDEX done_in_order ON done (account_id, run, n);

-- What the weekly report needs: how each attempt began and what the one before it left.
CREATE TABLE attempts (
    account_id INTEGER NOT NULL,
    run INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    from_seq INTEGER NOT NULL,
    restart INTEGER NOT NULL,
    crash_step TEXT,
    crash_at INTEGER,
    crash_error TEXT,
    lost_ms INTEGER,
    PRIMARY KEY (account_id, run, attempt)
) WITHOUT ROWID;

-- Answered calls by idempotency key. The rowid is the order of arrival, so old ones are found without an index.
CREATE TABLE replays (
    account_id INTEGER NOT NULL,
    idempotency_key TEXT NOT NULL,
    operation TEXT NOT NULL,
    body BLOB NOT NULL,
    run INTEGER NOT NULL,
    number INTEGER NOT NULL,
    answered_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, idempotency_key)
);
