-- The transaction of the writer and of a reader.
-- name: begin_write
BEGIN IMMEDIATE;

-- name: begin_read
BEGIN;

-- name: commit
COMMIT;

-- name: rollback
ROLLBACK;

-- One batch inside the writer's transaction.
-- name: begin_batch
SAVEPOINT batch;

-- name: keep_batch
RELEASE batch;

-- name: undo_batch
ROLLBACK TO batch;

-- name: list_result_views
SELECT name FROM sqlite_schema WHERE type = 'view' AND name LIKE 'result\_%' ESCAPE '\';
