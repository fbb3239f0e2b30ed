-- base_seq: the older checkpoint that the attempt under way was asked to go on from; NULL once it saved one.
ALTER TABLE runs ADD COLUMN base_seq INTEGER;

-- The status in which the attempt found the run.
ALTER TABLE attempts ADD COLUMN found TEXT;
