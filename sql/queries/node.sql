-- name: put_node
INSERT INTO node (node, drained, drain_reason, labels_json, inventory_json, first_seen_ns,
  last_seen_ns)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (node) DO UPDATE SET drained = ?2, drain_reason = ?3, labels_json = ?4,
  inventory_json = ?5, first_seen_ns = ?6, last_seen_ns = ?7;

-- name: list_nodes
SELECT node, drained, drain_reason, labels_json, inventory_json, first_seen_ns, last_seen_ns
FROM node ORDER BY node;
