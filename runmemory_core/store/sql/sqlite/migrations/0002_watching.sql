-- The plan says for how long an account's runs are kept; salt is the key of the hashes kept for it.
ALTER TABLE accounts ADD COLUMN plan TEXT NOT NULL DEFAULT 'own';
ALTER TABLE accounts ADD COLUMN salt BLOB;
UPDATE accounts SET salt = randomblob(16);
UPDATE accounts SET plan = 'pro' WHERE account_id IN (SELECT account_id FROM api_keys WHERE plan = 'pro')
    AND account_id NOT IN (SELECT account_id FROM api_keys WHERE plan = 'own');

-- What the weekly report needs of the attempt that is under way stands in the row that each save writes anyway:
-- whether it followed a restart, steps reported, how many of them an earlier attempt had reported, and their time.
ALTER TABLE runs ADD COLUMN restarted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN asks INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN repeats INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN repeated_ms INTEGER NOT NULL DEFAULT 0;

-- The same of attempts that ended, and what each was handed: done ids, and how long they took at first.
ALTER TABLE attempts ADD COLUMN abandoned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN handed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN handed_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN asks INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN repeats INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN repeated_ms INTEGER NOT NULL DEFAULT 0;

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
