-- name: put_job
INSERT INTO job (job_id, request_id, owner, source, name, benchmark, benchmark_version, spec_json,
  state, reason, priority, attempt, backend, nodes, nodes_json, ranks, oversubscribed, cases_total,
  cases_done, failure_json, submitted_ns, placed_ns, spawned_ns, rendezvous_ns, comm_init_ns,
  warmup_ns, first_timed_ns, finished_ns)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,
  ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28)
ON CONFLICT (job_id) DO UPDATE SET request_id = ?2, owner = ?3, source = ?4, name = ?5,
  benchmark = ?6, benchmark_version = ?7, spec_json = ?8, state = ?9, reason = ?10, priority = ?11,
  attempt = ?12, backend = ?13, nodes = ?14, nodes_json = ?15, ranks = ?16, oversubscribed = ?17,
  cases_total = ?18, cases_done = ?19, failure_json = ?20, submitted_ns = ?21, placed_ns = ?22,
  spawned_ns = ?23, rendezvous_ns = ?24, comm_init_ns = ?25, warmup_ns = ?26, first_timed_ns = ?27,
  finished_ns = ?28;

-- name: job_of_request
SELECT job_id FROM job WHERE request_id = ?1;

-- name: attempt_of_job
SELECT attempt FROM job WHERE job_id = ?1;

-- name: get_job
SELECT job_id, request_id, owner, benchmark_version, spec_json, state, reason, attempt, backend,
  nodes_json, ranks, oversubscribed, cases_total, cases_done, failure_json, submitted_ns, placed_ns,
  spawned_ns, rendezvous_ns, comm_init_ns, warmup_ns, first_timed_ns, finished_ns
FROM job WHERE job_id = ?1;

-- Newest first. ?1: benchmark or '', ?2: limit, -1 for none.
-- name: list_jobs
SELECT job_id FROM job WHERE ?1 = '' OR benchmark = ?1
ORDER BY submitted_ns DESC, job_id DESC LIMIT ?2;

-- As list_jobs; ?3: a JSON list of states.
-- name: list_jobs_in_states
SELECT job_id FROM job
WHERE state IN (SELECT value FROM json_each(?3)) AND (?1 = '' OR benchmark = ?1)
ORDER BY submitted_ns DESC, job_id DESC LIMIT ?2;
