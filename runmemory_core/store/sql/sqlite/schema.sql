-- Every primary key starts with account_id. Times are milliseconds since 1970 in UTC.
-- account_id and run are small integers that stand for the names, because they are in every row.

-- The plan says for how long an account's runs are kept; salt is the key of the hashes kept for it.
-- Numbers of runs are never used twice: last_run is the greatest that ever was.
CREATE TABLE accounts (
    account_id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
    , plan TEXT NOT NULL DEFAULT 'own',
    salt BLOB,
    last_run INTEGER NOT NULL DEFAULT 0);

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
-- The last four are about the attempt under way, for the weekly report: whether it followed a restart, steps reported,
-- how many of them an earlier attempt had reported, and the time these took. Each save writes this row anyway.
-- base_seq: the older checkpoint that the attempt under way was asked to go on from; NULL once it saved one.
-- kept_for_ms: the term that the client of an embedded store gave which wrote the run last; NULL is the plan's.
-- last_commits: hashes of the last commits to an adapter's run, the newest last.
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
    restarted INTEGER NOT NULL DEFAULT 0,
    asks INTEGER NOT NULL DEFAULT 0,
    repeats INTEGER NOT NULL DEFAULT 0,
    repeated_ms INTEGER NOT NULL DEFAULT 0,
    last_commits BLOB,
    base_seq INTEGER,
    kept_for_ms INTEGER,
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
-- (see parts.py) as JSON, compressed with zstd when that is smaller. thin: retention removed it as a checkpoint, and
-- keeps what a delta channel of a newer one is rebuilt from.
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
    thin INTEGER NOT NULL DEFAULT 0,
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

-- bytes is the size of the text, list_bytes what the elements of a page add to their list; NULL for a part that was
-- never named as a page.
CREATE TABLE parts (
    account_id INTEGER NOT NULL,
    run INTEGER NOT NULL,
    address TEXT NOT NULL,
    body BLOB NOT NULL,
    bytes INTEGER NOT NULL DEFAULT 0,
    list_bytes INTEGER,
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

-- What the weekly report needs: how each attempt began, what the one before it left, what it was handed (done ids,
-- and how long they took at first), and once it ended what it reported. abandoned: it started over a running run. found: the status the attempt found the run in.
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
    abandoned INTEGER NOT NULL DEFAULT 0,
    handed INTEGER NOT NULL DEFAULT 0,
    handed_ms INTEGER NOT NULL DEFAULT 0,
    asks INTEGER NOT NULL DEFAULT 0,
    repeats INTEGER NOT NULL DEFAULT 0,
    repeated_ms INTEGER NOT NULL DEFAULT 0,
    found TEXT,
    PRIMARY KEY (account_id, run, attempt)
) WITHOUT ROWID;

-- Answered calls by idempotency key; generation and attempt are the run's of then. They outlive the run, so that a late
-- repetition is known for one. The rowid is the order of arrival, so old ones are found without an index.
CREATE TABLE replays (
    account_id INTEGER NOT NULL,
    idempotency_key TEXT NOT NULL,
    operation TEXT NOT NULL,
    body BLOB NOT NULL,
    run INTEGER NOT NULL,
    number INTEGER NOT NULL,
    answered_at INTEGER NOT NULL,
    generation INTEGER NOT NULL DEFAULT 0,
    attempt INTEGER NOT NULL DEFAULT 1,
    bytes INTEGER,
    PRIMARY KEY (account_id, idempotency_key)
);

-- Keyed hashes of steps: in watch mode of each one reported, otherwise of the labels of an attempt after a restart.
-- attempt is the last that reported it, first the first one.
CREATE TABLE asked (
    account_id INTEGER NOT NULL,
    run INTEGER NOT NULL,
    item BLOB NOT NULL,
    first INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    asked_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, run, item)
) WITHOUT ROWID;

-- Keys under which addresses of callers without an API key are hashed; account_id is 0, they belong to none.
CREATE TABLE address_keys (
    account_id INTEGER NOT NULL,
    period INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (account_id, period)
) WITHOUT ROWID;
