-- name: clear_environment
DELETE FROM rank_environment WHERE job_id = ?1 AND attempt = ?2 AND rank = ?3;

-- name: put_environment_fact
INSERT INTO rank_environment (job_id, attempt, rank, key, value) VALUES (?1, ?2, ?3, ?4, ?5);

-- name: get_environment
SELECT rank, key, value FROM rank_environment
WHERE job_id = ?1 AND attempt = ?2 ORDER BY rank, key;
