#pragma once
// Tables of nodes and their backends.

#include <vector>

#include "absl/time/time.h"
#include "client/output/table.h"
#include "param/v1/node.pb.h"

namespace param {

Table NodesTable(const std::vector<v1::Node>& nodes, absl::Time now);

// The three states of each backend, with the reason of the first that does not hold.
Table BackendsTable(const v1::Node& node);

// One fact of a node per row: hardware, system, labels.
Table NodeFactsTable(const v1::Node& node, absl::Time now);

Table NicsTable(const v1::Node& node);

}  // namespace param
