-- name: append_log
INSERT INTO job_log (job_id, attempt, rank, seq, time_ns, level, text)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT DO NOTHING;

-- The last ?3 lines (-1: all), newest first. ?2: rank, -1 for all.
-- name: get_logs
SELECT attempt, rank, seq, time_ns, level, text FROM job_log
WHERE job_id = ?1 AND (?2 = -1 OR rank = ?2)
ORDER BY time_ns DESC, attempt DESC, rank DESC, seq DESC LIMIT ?3;
