-- name: put_measurement
INSERT INTO measurement (job_id, attempt, case_index, rank, metric, labels, unit, n, min, p50, p75,
  p95, p99, max, mean, stdev, ci95_low, ci95_high, slowest_rank)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19);

-- name: clear_measurements
DELETE FROM measurement WHERE job_id = ?1 AND attempt <= ?2 AND case_index = ?3;

-- name: get_measurements
SELECT m.case_index, m.rank, m.metric, m.labels, m.unit, m.n, m.min, m.p50, m.p75, m.p95, m.p99,
  m.max, m.mean, m.stdev, m.ci95_low, m.ci95_high, m.slowest_rank
FROM measurement m JOIN job j ON j.job_id = m.job_id AND j.attempt = m.attempt
WHERE m.job_id = ?1 AND m.case_index BETWEEN ?2 AND ?3
ORDER BY m.case_index, m.rank, m.metric, m.labels;
