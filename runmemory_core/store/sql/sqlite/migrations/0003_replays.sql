-- Numbers of runs are never used twice, so that nothing kept under one can be taken for another run's.
ALTER TABLE accounts ADD COLUMN last_run INTEGER NOT NULL DEFAULT 0;
UPDATE accounts SET last_run = max(
    (SELECT coalesce(max(run), 0) FROM runs r WHERE r.account_id = accounts.account_id),
    (SELECT coalesce(max(run), 0) FROM replays p WHERE p.account_id = accounts.account_id));

-- An answer counts in the generation of the run in which it was given: what came before was cleared.
ALTER TABLE replays ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
UPDATE replays SET generation = coalesce((SELECT generation FROM runs r
    WHERE r.account_id = replays.account_id AND r.run = replays.run), 0);

-- Hashes of the last commits to an adapter's run, the newest last, so that one which comes again is known.
ALTER TABLE runs ADD COLUMN last_commits BLOB;

-- thin: retention removed it as a checkpoint, and keeps what a delta channel of a newer one is rebuilt from.
ALTER TABLE checkpoints ADD COLUMN thin INTEGER NOT NULL DEFAULT 0;
