-- name: append_rank_event
INSERT INTO rank_event (job_id, attempt, rank, seq, received_ns, payload)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT DO NOTHING;

-- name: purge_rank_events
DELETE FROM rank_event WHERE job_id = ?1 AND attempt = ?2;

-- name: get_rank_events
SELECT rank, seq, received_ns, payload FROM rank_event
WHERE job_id = ?1 AND attempt = ?2 ORDER BY received_ns, rank, seq;
