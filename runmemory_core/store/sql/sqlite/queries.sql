-- Named statements of the SQLite dialect; every dialect has the same names.

-- name: format
SELECT user_version AS format FROM pragma_user_version;

-- name: account_by_name
SELECT account_id, plan, salt FROM accounts WHERE name = :name;

-- name: add_account
INSERT INTO accounts (name, created_at, plan, salt) VALUES (:name, :now, :plan, randomblob(16))
RETURNING account_id, plan, salt;

-- name: rename_account
UPDATE accounts SET name = :name WHERE account_id = :account_id;

-- name: set_plan
UPDATE accounts SET plan = :plan WHERE account_id = :account_id;

-- name: forget_idle_account
DELETE FROM accounts WHERE account_id = :account_id
    AND NOT EXISTS (SELECT 1 FROM usage u WHERE u.account_id = :account_id);

-- name: accounts_after
SELECT a.account_id, a.name, a.created_at, a.plan,
    EXISTS (SELECT 1 FROM runs r WHERE r.account_id = a.account_id) AS has_runs,
    EXISTS (SELECT 1 FROM api_keys k WHERE k.account_id = a.account_id) AS has_keys,
    EXISTS (SELECT 1 FROM accounts w WHERE w.name = :watching || a.name) AS is_watched
FROM accounts a WHERE a.account_id > :after ORDER BY a.account_id LIMIT :limit;

-- name: address_keys
SELECT period, body FROM address_keys WHERE account_id = 0 AND period >= :since ORDER BY period DESC;

-- name: add_address_key
INSERT INTO address_keys (account_id, period, body) VALUES (0, :period, randomblob(32)) ON CONFLICT DO NOTHING;

-- name: forget_address_keys
DELETE FROM address_keys WHERE account_id = 0 AND period < :since;

-- name: key_by_hash
SELECT k.account_id, k.key_id, k.plan, k.revoked_at, a.name AS account
FROM api_keys k JOIN accounts a USING (account_id) WHERE k.key_sha256 = :key_sha256;

-- name: add_key
INSERT INTO api_keys (account_id, key_id, key_sha256, plan, label, created_at)
VALUES (:account_id, :key_id, :key_sha256, :plan, :label, :now);

-- name: keys
SELECT k.key_id, k.plan, k.label, k.created_at, k.revoked_at, a.name AS account
FROM api_keys k JOIN accounts a USING (account_id) ORDER BY k.created_at, k.key_id;

-- name: forget_keys
DELETE FROM api_keys WHERE account_id = :account_id;

-- name: revoke_key
UPDATE api_keys SET revoked_at = coalesce(revoked_at, :now) WHERE key_id = :key_id;

-- name: usage
SELECT calls FROM usage WHERE account_id = :account_id AND day = :day;

-- name: count_call
INSERT INTO usage (account_id, day, calls) VALUES (:account_id, :day, 1)
ON CONFLICT (account_id, day) DO UPDATE SET calls = calls + 1 RETURNING calls;

-- name: usage_since
SELECT day, calls FROM usage WHERE account_id = :account_id AND day >= :since ORDER BY day;

-- name: forget_usage
DELETE FROM usage WHERE account_id = :account_id AND day < :before;

-- name: run
SELECT * FROM runs WHERE account_id = :account_id AND run_id = :run_id;

-- name: next_run
UPDATE accounts SET last_run = last_run + 1 WHERE account_id = :account_id RETURNING last_run AS run;

-- name: add_run
INSERT INTO runs (account_id, run, run_id, adapter, job, status, seq, generation, generation_seq, attempt,
    done_count, worked_ms, created_at, updated_at, kept_for_ms)
VALUES (:account_id, :run, :run_id, :adapter, :job, 'running', 0, 1, 0, :attempt, 0, 0, :now, :now, :kept_for_ms);

-- name: begin_attempt
UPDATE runs SET attempt = :attempt, status = 'running', error = NULL, generation = :generation,
    generation_seq = :generation_seq, done_count = :done_count, worked_ms = :worked_ms, last_body = NULL,
    in_flight = :in_flight, restarted = :restarted, asks = 0, repeats = 0, repeated_ms = 0, base_seq = :base_seq,
    updated_at = :now, kept_for_ms = :kept_for_ms
WHERE account_id = :account_id AND run = :run;

-- name: advance_run
UPDATE runs SET seq = :seq, error = :error, job = :job, last_body = :last_body,
    in_flight = :in_flight, done_count = :done_count, worked_ms = :worked_ms, asks = :asks, repeats = :repeats,
    repeated_ms = :repeated_ms, base_seq = NULL, updated_at = :now, kept_for_ms = :kept_for_ms
WHERE account_id = :account_id AND run = :run;

-- name: advance_adapter_run
UPDATE runs SET seq = :seq, last_body = :last_body, last_commits = :last_commits, updated_at = :now,
    kept_for_ms = :kept_for_ms
WHERE account_id = :account_id AND run = :run;

-- name: set_status
UPDATE runs SET status = :status WHERE account_id = :account_id AND run = :run;

-- name: claim_run
UPDATE runs SET attempt = attempt + 1, updated_at = :now WHERE account_id = :account_id AND run = :run
RETURNING attempt;

-- name: bury_run
UPDATE runs SET deleted_at = :now, status = :status, done_count = 0, in_flight = NULL, last_body = NULL,
    last_commits = NULL
WHERE account_id = :account_id AND run = :run;

-- name: revive_run
UPDATE runs SET deleted_at = NULL, adapter = :adapter, job = :job, status = 'running', error = NULL, seq = 0,
    generation = generation + 1, generation_seq = 0, attempt = :attempt, done_count = 0, worked_ms = 0,
    restarted = 0, asks = 0, repeats = 0, repeated_ms = 0, base_seq = NULL, created_at = :now, updated_at = :now,
    kept_for_ms = :kept_for_ms
WHERE account_id = :account_id AND run = :run;

-- name: runs_with_status
SELECT run, run_id, status, seq, updated_at FROM runs
WHERE account_id = :account_id AND status = :status AND seq > generation_seq AND run_id != :asked
ORDER BY run DESC LIMIT :limit;

-- name: adapter_runs
SELECT * FROM runs WHERE account_id = :account_id AND adapter = :adapter AND deleted_at IS NULL ORDER BY run;

-- name: runs_since
SELECT r.run_id, r.adapter, r.status, r.seq, r.created_at, r.updated_at,
    CASE WHEN r.created_at < :since THEN (SELECT count(*) FROM checkpoints c
        WHERE c.account_id = r.account_id AND c.run = r.run AND c.saved_at >= :since AND c.thin = 0) ELSE r.seq END AS kept
FROM runs r WHERE r.account_id = :account_id AND r.updated_at >= :since AND r.deleted_at IS NULL;

-- name: add_attempt
INSERT INTO attempts (account_id, run, attempt, generation, started_at, from_seq, restart, crash_step, crash_at,
    crash_error, lost_ms, abandoned, handed, handed_ms, found)
VALUES (:account_id, :run, :attempt, :generation, :now, :from_seq, :restart, :crash_step, :crash_at,
    :crash_error, :lost_ms, :abandoned, :handed, :handed_ms, :found);

-- name: end_attempt
UPDATE attempts SET asks = :asks, repeats = :repeats, repeated_ms = :repeated_ms
WHERE account_id = :account_id AND run = :run AND attempt = :attempt;

-- name: forget_attempts
DELETE FROM attempts WHERE account_id = :account_id AND run = :run AND attempt <= :through;

-- name: forget_old_attempts
DELETE FROM attempts WHERE account_id = :account_id AND run = :run AND attempt IN (SELECT attempt FROM attempts
    WHERE account_id = :account_id AND run = :run AND started_at < :before LIMIT :limit);

-- name: attempt
SELECT * FROM attempts WHERE account_id = :account_id AND run = :run AND attempt = :attempt;

-- name: last_attempts
SELECT * FROM attempts WHERE account_id = :account_id AND run = :run ORDER BY attempt DESC LIMIT :limit;

-- name: idle_attempts
SELECT count(*) AS count FROM attempts
WHERE account_id = :account_id AND run = :run AND from_seq = :from_seq AND generation = :generation;

-- name: attempts_since
SELECT r.run_id, r.status, a.restart, a.abandoned, a.crash_step, a.crash_at, a.crash_error, a.lost_ms, a.handed,
    a.handed_ms,
    CASE WHEN a.attempt = r.attempt THEN r.asks ELSE a.asks END AS asks,
    CASE WHEN a.attempt = r.attempt THEN r.repeats ELSE a.repeats END AS repeats,
    CASE WHEN a.attempt = r.attempt THEN r.repeated_ms ELSE a.repeated_ms END AS repeated_ms
FROM attempts a JOIN runs r USING (account_id, run)
WHERE a.account_id = :account_id AND a.started_at >= :since AND (a.restart = 1 OR a.abandoned = 1)
    AND r.updated_at >= :since
ORDER BY a.started_at;

-- name: add_asked
INSERT INTO asked (account_id, run, item, first, attempt, asked_at)
VALUES (:account_id, :run, :item, :attempt, :attempt, :now)
ON CONFLICT (account_id, run, item) DO UPDATE SET attempt = :attempt, asked_at = :now WHERE attempt < :attempt
RETURNING first;

-- name: clear_asked
DELETE FROM asked WHERE account_id = :account_id AND run = :run AND item IN
    (SELECT item FROM asked WHERE account_id = :account_id AND run = :run LIMIT :limit);

-- name: forget_old_asked
DELETE FROM asked WHERE account_id = :account_id AND run = :run AND item IN (SELECT item FROM asked
    WHERE account_id = :account_id AND run = :run AND asked_at < :before LIMIT :limit);

-- name: add_checkpoint
INSERT INTO checkpoints (account_id, run, seq, lane, key, parent, step, attempt, bytes, saved_at, removed,
    metadata, body)
VALUES (:account_id, :run, :seq, :lane, :key, :parent, :step, :attempt, :bytes, :now, :removed, :metadata, :body);

-- name: replace_checkpoint
UPDATE checkpoints SET parent = :parent, step = :step, bytes = :bytes, saved_at = :now, metadata = :metadata,
    body = :body
WHERE account_id = :account_id AND run = :run AND seq = :seq;

-- name: checkpoint
SELECT * FROM checkpoints WHERE account_id = :account_id AND run = :run AND seq = :seq;

-- name: latest_checkpoint
SELECT * FROM checkpoints WHERE account_id = :account_id AND run = :run AND thin = 0 ORDER BY seq DESC LIMIT 1;

-- name: oldest_seq
SELECT min(seq) AS seq FROM checkpoints WHERE account_id = :account_id AND run = :run AND thin = 0;

-- name: checkpoint_by_key
SELECT * FROM checkpoints WHERE account_id = :account_id AND run = :run AND lane = :lane AND key = :key;

-- name: seq_by_key
SELECT c.seq FROM checkpoints c JOIN lanes l USING (account_id, run, lane)
WHERE c.account_id = :account_id AND c.run = :run AND l.name = :name AND c.key = :key;

-- name: head_key
SELECT c.key FROM checkpoints c JOIN lanes l USING (account_id, run, lane)
WHERE c.account_id = :account_id AND c.run = :run AND l.name = :name AND c.key IS NOT NULL
ORDER BY c.key DESC LIMIT 1;

-- name: call_lane_heads
SELECT l.lane, l.name, c.key, c.metadata
FROM (SELECT lane, max(key) AS key FROM checkpoints
      WHERE account_id = :account_id AND run = :run AND key IS NOT NULL GROUP BY lane) newest
JOIN checkpoints c ON c.account_id = :account_id AND c.run = :run AND c.lane = newest.lane AND c.key = newest.key
JOIN lanes l ON l.account_id = :account_id AND l.run = :run AND l.lane = newest.lane
WHERE l.name LIKE '%:%';

-- name: lane_head
SELECT * FROM checkpoints WHERE account_id = :account_id AND run = :run AND lane = :lane AND key IS NOT NULL
ORDER BY key DESC LIMIT 1;

-- name: checkpoint_rows
SELECT r.run, r.run_id, r.status, r.updated_at, r.kept_for_ms, r.seq AS run_seq, c.seq, c.step, c.bytes, c.saved_at,
    coalesce(l.name, '') AS lane, min(c.saved_at, r.updated_at) AS moment
FROM checkpoints c JOIN runs r USING (account_id, run) LEFT JOIN lanes l USING (account_id, run, lane)
WHERE c.account_id = :account_id AND c.run = :run AND c.seq < :before AND c.thin = 0 ORDER BY c.seq DESC LIMIT :limit;

-- name: recent_runs
SELECT run, updated_at FROM runs
WHERE account_id = :account_id AND deleted_at IS NULL AND (NOT :unfinished OR status <> 'finished')
ORDER BY updated_at DESC, run DESC LIMIT :limit OFFSET :offset;

-- name: newest_checkpoint_rows
SELECT r.run, r.run_id, r.status, r.updated_at, r.kept_for_ms, r.seq AS run_seq, c.seq, c.step, c.bytes, c.saved_at,
    coalesce(l.name, '') AS lane, min(c.saved_at, r.updated_at) AS moment
FROM json_each(:runs) asked CROSS JOIN runs r ON r.account_id = :account_id AND r.run = asked.value
CROSS JOIN checkpoints c ON c.account_id = r.account_id AND c.run = r.run AND c.seq IN (
    SELECT n.seq FROM checkpoints n WHERE n.account_id = r.account_id AND n.run = r.run AND n.thin = 0
    ORDER BY n.seq DESC LIMIT :of_each)
LEFT JOIN lanes l ON l.account_id = c.account_id AND l.run = c.run AND l.lane = c.lane
WHERE (min(c.saved_at, r.updated_at), c.run, c.seq) < (:moment, :run, :before);

-- name: checkpoint_counts
SELECT count(*) AS count, min(saved_at) AS oldest, max(saved_at) AS newest
FROM checkpoints c JOIN runs r USING (account_id, run)
WHERE c.account_id = :account_id AND c.thin = 0 AND (:run_id IS NULL OR r.run_id = :run_id)
    AND (NOT :unfinished OR r.status <> 'finished');

-- name: has_checkpoints
SELECT 1 FROM checkpoints WHERE account_id = :account_id LIMIT 1;

-- name: adapter_checkpoints
SELECT c.run, c.seq, c.key, c.lane, c.metadata, l.name AS lane_name, r.run_id
FROM runs r JOIN checkpoints c USING (account_id, run) JOIN lanes l USING (account_id, run, lane)
WHERE r.account_id = :account_id AND r.deleted_at IS NULL AND c.key IS NOT NULL AND c.thin = 0
    AND (:run IS NULL OR r.run = :run) AND (:adapter IS NULL OR r.adapter = :adapter)
    AND (:lane_name IS NULL OR l.name = :lane_name)
    AND (:key IS NULL OR c.key = :key) AND (:before IS NULL OR c.key < :before)
    AND (:after_key IS NULL OR (c.key, -c.run, -c.lane) < (:after_key, -:after_run, -:after_lane))
ORDER BY c.key DESC, c.run, c.lane LIMIT :limit;

-- name: chain
WITH RECURSIVE chain (seq, parent, depth) AS (
    SELECT seq, parent, 1 FROM checkpoints
    WHERE account_id = :account_id AND run = :run AND lane = :lane AND key = :key
    UNION ALL
    SELECT c.seq, c.parent, chain.depth + 1 FROM chain JOIN checkpoints c
        ON c.account_id = :account_id AND c.run = :run AND c.lane = :lane AND c.key = chain.parent
    WHERE chain.depth < :limit
)
SELECT seq FROM chain ORDER BY depth;

-- name: checkpoints_by_seq
SELECT c.*, l.name AS lane_name FROM checkpoints c JOIN lanes l USING (account_id, run, lane)
WHERE c.account_id = :account_id AND c.run = :run AND c.seq IN (SELECT value FROM json_each(:seqs));

-- name: writes_by_seq
SELECT c.seq, w.body FROM checkpoints c JOIN writes w USING (account_id, run, lane, key)
WHERE c.account_id = :account_id AND c.run = :run AND c.seq IN (SELECT value FROM json_each(:seqs))
ORDER BY c.seq, w.n;

-- name: count_kept
SELECT count(*) AS count FROM checkpoints
WHERE account_id = :account_id AND run = :run AND lane = :lane AND key IS NOT NULL AND thin = 0;

-- name: lane_checkpoints
SELECT key, parent, seq, thin, metadata FROM checkpoints
WHERE account_id = :account_id AND run = :run AND lane = :lane AND key IS NOT NULL ORDER BY key DESC;

-- name: thin_checkpoint
UPDATE checkpoints SET thin = 1 WHERE account_id = :account_id AND run = :run AND seq = :seq;

-- name: forget_commits
UPDATE runs SET last_body = NULL, last_commits = NULL WHERE account_id = :account_id AND run = :run;

-- name: run_checkpoints
SELECT * FROM checkpoints WHERE account_id = :account_id AND run = :run ORDER BY seq;

-- name: delete_checkpoint
DELETE FROM checkpoints WHERE account_id = :account_id AND run = :run AND seq = :seq;

-- name: forget_old_checkpoints
DELETE FROM checkpoints WHERE rowid IN (SELECT rowid FROM checkpoints
    WHERE account_id = :account_id AND run = :run AND saved_at < :before LIMIT :limit);

-- name: evict_checkpoints
DELETE FROM checkpoints WHERE account_id = :account_id AND run = :run AND seq <= :through AND key IS NULL;

-- name: runs_after
SELECT r.account_id, r.run, r.run_id, r.status, r.updated_at, r.deleted_at, r.kept_for_ms, a.name AS account, a.plan
FROM runs r JOIN accounts a USING (account_id)
WHERE (r.account_id, r.run) > (:account_id, :run) ORDER BY r.account_id, r.run LIMIT :limit;

-- name: forget_run
DELETE FROM runs WHERE account_id = :account_id AND run = :run;

-- name: lane
SELECT lane, evicted_through FROM lanes WHERE account_id = :account_id AND run = :run AND name = :name;

-- name: lanes
SELECT lane, name, evicted_through FROM lanes WHERE account_id = :account_id AND run = :run;

-- name: add_lane
INSERT INTO lanes (account_id, run, lane, name)
SELECT :account_id, :run, coalesce(max(lane), -1) + 1, :name FROM lanes
WHERE account_id = :account_id AND run = :run
RETURNING lane, evicted_through;

-- name: evict_lane
UPDATE lanes SET evicted_through = :through WHERE account_id = :account_id AND run = :run AND lane = :lane
    AND (evicted_through IS NULL OR evicted_through < :through);

-- name: writes
SELECT n, body FROM writes
WHERE account_id = :account_id AND run = :run AND lane = :lane AND key = :key ORDER BY n;

-- name: run_writes
SELECT w.key, w.n, w.body, l.name AS lane_name FROM writes w JOIN lanes l USING (account_id, run, lane)
WHERE w.account_id = :account_id AND w.run = :run ORDER BY w.lane, w.key, w.n;

-- name: add_write
INSERT INTO writes (account_id, run, lane, key, n, body) VALUES (:account_id, :run, :lane, :key, :n, :body);

-- name: delete_lane_checkpoints
DELETE FROM checkpoints WHERE account_id = :account_id AND run = :run AND lane = :lane;

-- name: delete_lane_writes
DELETE FROM writes WHERE account_id = :account_id AND run = :run AND lane = :lane;

-- name: used_bytes
SELECT (page_count - freelist_count) * page_size AS bytes
FROM pragma_page_count, pragma_freelist_count, pragma_page_size;

-- name: delete_writes
DELETE FROM writes WHERE account_id = :account_id AND run = :run AND lane = :lane AND key = :key;

-- name: part
SELECT body FROM parts WHERE account_id = :account_id AND run = :run AND address = :address;

-- name: parts
SELECT address, body FROM parts
WHERE account_id = :account_id AND run = :run AND address IN (SELECT value FROM json_each(:addresses));

-- name: present_parts
SELECT address, bytes, list_bytes FROM parts
WHERE account_id = :account_id AND run = :run AND address IN (SELECT value FROM json_each(:addresses));

-- name: add_part
INSERT INTO parts (account_id, run, address, body, bytes, list_bytes)
VALUES (:account_id, :run, :address, :body, :bytes, :list_bytes)
ON CONFLICT DO UPDATE SET list_bytes = excluded.list_bytes
    WHERE list_bytes IS NULL AND excluded.list_bytes IS NOT NULL;

-- name: part_addresses
SELECT address FROM parts WHERE account_id = :account_id AND run = :run;

-- name: delete_part
DELETE FROM parts WHERE account_id = :account_id AND run = :run AND address = :address;

-- name: copy_parts
INSERT INTO parts (account_id, run, address, body, bytes, list_bytes)
SELECT account_id, :target, address, body, bytes, list_bytes FROM parts WHERE account_id = :account_id AND run = :run;

-- name: copy_lanes
INSERT INTO lanes (account_id, run, lane, name, evicted_through)
SELECT account_id, :target, lane, name, evicted_through FROM lanes WHERE account_id = :account_id AND run = :run;

-- name: copy_writes
INSERT INTO writes (account_id, run, lane, key, n, body)
SELECT account_id, :target, lane, key, n, body FROM writes WHERE account_id = :account_id AND run = :run;

-- name: copy_done
INSERT INTO done (account_id, run, item, n, attempt)
SELECT account_id, :target, item, n, :attempt FROM done WHERE account_id = :account_id AND run = :run;

-- name: copy_progress
UPDATE runs SET (seq, status, error, in_flight, generation_seq, done_count, worked_ms)
    = (SELECT seq, status, error, in_flight, generation_seq, done_count, worked_ms FROM runs
       WHERE account_id = :account_id AND run = :run)
WHERE account_id = :account_id AND run = :target;

-- name: copy_checkpoints
INSERT INTO checkpoints (account_id, run, seq, lane, key, parent, step, attempt, bytes, saved_at, removed, metadata,
    body, thin)
SELECT account_id, :target, seq, lane, key, parent, step, :attempt, bytes, saved_at, removed, metadata, body, thin
FROM checkpoints WHERE account_id = :account_id AND run = :run;

-- name: add_done
INSERT INTO done (account_id, run, item, n, attempt) VALUES (:account_id, :run, :item, :n, :attempt)
ON CONFLICT (account_id, run, item) DO UPDATE SET attempt = :attempt WHERE attempt < :attempt RETURNING n;

-- name: known_done
SELECT count(*) AS count FROM done
WHERE account_id = :account_id AND run = :run AND item IN (SELECT value FROM json_each(:items));

-- name: done_page
SELECT item, n FROM done WHERE account_id = :account_id AND run = :run AND n >= :from_n ORDER BY n LIMIT :limit;

-- name: clear_done
DELETE FROM done WHERE account_id = :account_id AND run = :run AND item IN
    (SELECT item FROM done WHERE account_id = :account_id AND run = :run LIMIT :limit);

-- name: clear_checkpoints
DELETE FROM checkpoints WHERE rowid IN
    (SELECT rowid FROM checkpoints WHERE account_id = :account_id AND run = :run LIMIT :limit);

-- name: clear_writes
DELETE FROM writes WHERE account_id = :account_id AND run = :run AND (lane, key, n) IN
    (SELECT lane, key, n FROM writes WHERE account_id = :account_id AND run = :run LIMIT :limit);

-- name: clear_parts
DELETE FROM parts WHERE rowid IN
    (SELECT rowid FROM parts WHERE account_id = :account_id AND run = :run LIMIT :limit);

-- name: clear_lanes
DELETE FROM lanes WHERE account_id = :account_id AND run = :run AND lane IN
    (SELECT lane FROM lanes WHERE account_id = :account_id AND run = :run LIMIT :limit);

-- name: clear_attempts
DELETE FROM attempts WHERE account_id = :account_id AND run = :run AND attempt IN
    (SELECT attempt FROM attempts WHERE account_id = :account_id AND run = :run LIMIT :limit);

-- name: replay
SELECT body, run, number, generation, attempt, bytes FROM replays
WHERE account_id = :account_id AND idempotency_key = :idempotency_key AND answered_at >= :since;

-- name: add_replay
INSERT OR REPLACE INTO replays (account_id, idempotency_key, operation, body, run, number, answered_at, generation,
    attempt, bytes)
SELECT :account_id, :idempotency_key, :operation, :body, :run, :number, :now, generation, attempt, :bytes
FROM runs WHERE account_id = :account_id AND run = :run;

-- name: forget_replays
DELETE FROM replays WHERE rowid IN (SELECT rowid FROM replays ORDER BY rowid LIMIT :limit)
    AND answered_at < :before;
