-- name: put_case
INSERT INTO job_case (job_id, case_index, case_id, set_row, application, attempt, status, reason,
  info_json)
VALUES (?1, ?2, ?3, ?4, ?5, 0, '', '', '{}');

-- name: put_case_param
INSERT INTO case_param (job_id, case_index, name, type, value) VALUES (?1, ?2, ?3, ?4, ?5);

-- name: has_cases
SELECT EXISTS (SELECT 1 FROM job_case WHERE job_id = ?1);

-- name: attempt_of_case
SELECT attempt FROM job_case WHERE job_id = ?1 AND case_index = ?2;

-- name: end_case
UPDATE job_case SET attempt = ?3, status = ?4, reason = ?5, info_json = ?6
WHERE job_id = ?1 AND case_index = ?2;

-- A later attempt began: what an earlier one found no longer counts.
-- name: reopen_cases
UPDATE job_case SET status = '', reason = '', info_json = '{}'
WHERE job_id = ?1 AND attempt BETWEEN 1 AND ?2 - 1;

-- Cases ?2 to ?3 of a job; only a result of the job's latest attempt counts.
-- name: get_cases
SELECT c.case_index, c.case_id, c.set_row, c.application, c.attempt > 0 AND c.attempt = j.attempt,
  c.status, c.reason, c.info_json
FROM job_case c JOIN job j ON j.job_id = c.job_id
WHERE c.job_id = ?1 AND c.case_index BETWEEN ?2 AND ?3
ORDER BY c.case_index;

-- name: get_case_params
SELECT case_index, name, type, value FROM case_param
WHERE job_id = ?1 AND case_index BETWEEN ?2 AND ?3
ORDER BY case_index, name;

-- Ended cases of finished jobs, newest first. ?1: benchmark or '', ?2: case or '', ?3: node or '',
-- ?4: limit, -1 for none.
-- name: list_results
SELECT j.job_id, c.case_index
FROM job j JOIN job_case c ON c.job_id = j.job_id
WHERE j.state IN ('SUCCEEDED', 'FAILED', 'CANCELLED', 'TIMED_OUT')
  AND c.attempt > 0 AND c.attempt = j.attempt
  AND (?1 = '' OR j.benchmark = ?1)
  AND (?2 = '' OR c.case_id = ?2)
  AND (?3 = '' OR ?3 IN (SELECT value FROM json_each(j.nodes_json)))
ORDER BY j.finished_ns DESC, j.job_id DESC, c.case_index LIMIT ?4;

-- As list_results, by the index over identities. ?2 is not ''.
-- name: list_results_of_case
SELECT j.job_id, c.case_index
FROM job_case c JOIN job j ON j.job_id = c.job_id
WHERE c.case_id = ?2
  AND j.state IN ('SUCCEEDED', 'FAILED', 'CANCELLED', 'TIMED_OUT')
  AND c.attempt > 0 AND c.attempt = j.attempt
  AND (?1 = '' OR j.benchmark = ?1)
  AND (?3 = '' OR ?3 IN (SELECT value FROM json_each(j.nodes_json)))
ORDER BY j.finished_ns DESC, j.job_id DESC, c.case_index LIMIT ?4;
