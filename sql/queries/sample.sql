-- name: put_sample
INSERT INTO sample (job_id, attempt, case_index, rank, metric, labels, n, data)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8);

-- name: clear_samples
DELETE FROM sample WHERE job_id = ?1 AND attempt <= ?2 AND case_index = ?3;

-- From case ?2 and its rank ?3 on.
-- name: get_samples
SELECT s.case_index, s.rank, s.metric, s.labels, s.n, s.data
FROM sample s JOIN job j ON j.job_id = s.job_id AND j.attempt = s.attempt
WHERE s.job_id = ?1 AND (s.case_index, s.rank) >= (?2, ?3)
ORDER BY s.case_index, s.rank, s.metric, s.labels;
