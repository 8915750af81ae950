-- name: put_case_rank
INSERT INTO case_rank (job_id, attempt, case_index, rank, node, status, reason)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7);

-- name: clear_case_ranks
DELETE FROM case_rank WHERE job_id = ?1 AND attempt <= ?2 AND case_index = ?3;

-- name: get_case_ranks
SELECT r.case_index, r.rank, r.node, r.status, r.reason
FROM case_rank r JOIN job j ON j.job_id = r.job_id AND j.attempt = r.attempt
WHERE r.job_id = ?1 AND r.case_index BETWEEN ?2 AND ?3
ORDER BY r.case_index, r.rank;
