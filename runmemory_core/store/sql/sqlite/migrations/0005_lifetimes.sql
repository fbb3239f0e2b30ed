-- What a repeated call is answered once its checkpoint is gone: its size, and the attempt that saved it, by which it is
-- told from one of the same seq in a later life of the run.
ALTER TABLE replays ADD COLUMN attempt INTEGER;
ALTER TABLE replays ADD COLUMN bytes INTEGER;
