-- name: put_attempt
INSERT INTO attempt (job_id, attempt, state, ranks_json, failure_json, started_ns, finished_ns)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (job_id, attempt) DO UPDATE SET state = ?3, ranks_json = ?4, failure_json = ?5,
  started_ns = ?6, finished_ns = ?7;

-- name: get_attempts
SELECT attempt, state, ranks_json, failure_json, started_ns, finished_ns
FROM attempt WHERE job_id = ?1 ORDER BY attempt;

-- name: has_attempt
SELECT EXISTS (SELECT 1 FROM attempt WHERE job_id = ?1 AND attempt = ?2);
