-- What a repeated call is answered once its checkpoint is gone: its size, and the attempt that saved it, by which it is
-- told from one of the same seq in a later life of the run.
ALTER TABLE replays ADD COLUMN attempt INTEGER NOT NULL DEFAULT 1;
ALTER TABLE replays ADD COLUMN bytes INTEGER;

-- So long after its last activity the run expires, by the client of an embedded store that wrote it last; NULL is never,
-- or by the plan.
ALTER TABLE runs ADD COLUMN kept_for_ms INTEGER;
