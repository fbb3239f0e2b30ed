-- How large a state is follows from its nodes without reading what they name: bytes is the size of a part's text,
-- list_bytes what the elements of a page add to their list (NULL for a part that was never named as a page; a page
-- that stands here already is asked for again).
ALTER TABLE parts ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE parts ADD COLUMN list_bytes INTEGER;
