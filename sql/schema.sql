-- What all migrations add up to. Generated: PARAM_UPDATE_GOLDEN=1 with the store's unit tests
-- writes it anew.

CREATE TABLE job (
  job_id TEXT PRIMARY KEY,
  request_id TEXT NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  source TEXT NOT NULL,
  name TEXT NOT NULL,
  benchmark TEXT NOT NULL,
  benchmark_version INTEGER NOT NULL,
  spec_json TEXT NOT NULL,
  state TEXT NOT NULL,
  reason TEXT NOT NULL,
  priority INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  backend TEXT NOT NULL,
  nodes INTEGER NOT NULL,  -- asked for
  nodes_json TEXT NOT NULL,  -- names placed on, in rank order, of the latest attempt
  ranks INTEGER NOT NULL,
  oversubscribed INTEGER NOT NULL,
  cases_total INTEGER NOT NULL,
  cases_done INTEGER NOT NULL,
  failure_json TEXT NOT NULL,
  submitted_ns INTEGER NOT NULL,
  placed_ns INTEGER NOT NULL,
  spawned_ns INTEGER NOT NULL,
  rendezvous_ns INTEGER NOT NULL,
  comm_init_ns INTEGER NOT NULL,
  warmup_ns INTEGER NOT NULL,
  first_timed_ns INTEGER NOT NULL,
  finished_ns INTEGER NOT NULL
) STRICT;

CREATE INDEX job_by_state ON job (state, submitted_ns);

CREATE INDEX job_by_time ON job (submitted_ns);

CREATE INDEX job_by_benchmark ON job (benchmark, submitted_ns);

CREATE INDEX job_by_finish ON job (finished_ns);

CREATE TABLE attempt (
  job_id TEXT NOT NULL REFERENCES job (job_id) ON DELETE CASCADE,
  attempt INTEGER NOT NULL,
  state TEXT NOT NULL,
  ranks_json TEXT NOT NULL,
  failure_json TEXT NOT NULL,
  started_ns INTEGER NOT NULL,
  finished_ns INTEGER NOT NULL,
  PRIMARY KEY (job_id, attempt)
) STRICT;

CREATE TABLE rank_environment (
  job_id TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (job_id, attempt, rank, key),
  FOREIGN KEY (job_id, attempt) REFERENCES attempt (job_id, attempt) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE job_case (
  job_id TEXT NOT NULL REFERENCES job (job_id) ON DELETE CASCADE,
  case_index INTEGER NOT NULL,
  case_id TEXT NOT NULL,
  set_row TEXT NOT NULL,
  application TEXT NOT NULL,
  attempt INTEGER NOT NULL,  -- whose result this is; 0 until it ended
  status TEXT NOT NULL,  -- '' until it ended
  reason TEXT NOT NULL,
  info_json TEXT NOT NULL,
  PRIMARY KEY (job_id, case_index)
) STRICT;

CREATE INDEX job_case_by_identity ON job_case (case_id, job_id);

CREATE TABLE case_param (
  job_id TEXT NOT NULL,
  case_index INTEGER NOT NULL,
  name TEXT NOT NULL,
  type TEXT NOT NULL,  -- int, real, bool (as 0 and 1) or text
  value ANY NOT NULL,
  PRIMARY KEY (job_id, case_index, name),
  FOREIGN KEY (job_id, case_index) REFERENCES job_case (job_id, case_index) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE case_rank (
  job_id TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  case_index INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  node TEXT NOT NULL,
  status TEXT NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (job_id, attempt, case_index, rank),
  FOREIGN KEY (job_id, case_index) REFERENCES job_case (job_id, case_index) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE measurement (
  job_id TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  case_index INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  metric TEXT NOT NULL,
  labels TEXT NOT NULL,  -- canonical "k=v,k=v", sorted by key, %XX for , = %; '' for none
  unit TEXT NOT NULL,
  n INTEGER NOT NULL,
  min REAL,
  p50 REAL,
  p75 REAL,
  p95 REAL,
  p99 REAL,
  max REAL,
  mean REAL,
  stdev REAL,
  ci95_low REAL,
  ci95_high REAL,
  slowest_rank INTEGER NOT NULL,  -- -1 where it has no meaning
  PRIMARY KEY (job_id, attempt, case_index, rank, metric, labels),
  FOREIGN KEY (job_id, case_index) REFERENCES job_case (job_id, case_index) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE sample (
  job_id TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  case_index INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  metric TEXT NOT NULL,
  labels TEXT NOT NULL,
  n INTEGER NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (job_id, attempt, case_index, rank, metric, labels),
  FOREIGN KEY (job_id, case_index) REFERENCES job_case (job_id, case_index) ON DELETE CASCADE
) STRICT;

CREATE TABLE rank_event (
  job_id TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  received_ns INTEGER NOT NULL,
  payload BLOB NOT NULL,
  PRIMARY KEY (job_id, attempt, rank, seq),
  FOREIGN KEY (job_id, attempt) REFERENCES attempt (job_id, attempt) ON DELETE CASCADE
) STRICT;

CREATE TABLE job_log (
  job_id TEXT NOT NULL REFERENCES job (job_id) ON DELETE CASCADE,
  attempt INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  time_ns INTEGER NOT NULL,
  level TEXT NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (job_id, attempt, rank, seq)
) STRICT;

CREATE TABLE node (
  node TEXT PRIMARY KEY,
  drained INTEGER NOT NULL,
  drain_reason TEXT NOT NULL,
  labels_json TEXT NOT NULL,
  inventory_json TEXT NOT NULL,
  first_seen_ns INTEGER NOT NULL,
  last_seen_ns INTEGER NOT NULL
) STRICT;
