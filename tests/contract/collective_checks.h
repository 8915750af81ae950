#pragma once
// Checks every operation of a table "comm" from the side of one rank: types, reductions, in place,
// odd and uneven sizes, roots, subsets, requests, groups of send and recv. All ranks of the
// communicator call it at the same time, as threads or as processes; it uses no other channel.

#include <string>
#include <vector>

#include "agent/backend/device.h"
#include "agent/backend/param_backend.h"

namespace param {

// The rank under test. Nothing is owned. REQUIRES: size at most 8.
struct CommUnderTest {
  const param_comm_v1* table = nullptr;
  param_ctx* ctx = nullptr;  // of the table "comm"
  param_comm* comm = nullptr;
  const Device* device = nullptr;
  std::int32_t rank = 0, size = 1;
  Stream* stream = nullptr;  // null where the backend blocks
};

struct CollectiveReport {
  int ran = 0;  // operations that were run and compared
  // "all_reduce f32 sum in place n=7 root=0, rank 1 of 3: element 3: expected 5, got 4 (2 of 7
  // wrong)". An error of the backend ends the checks, since the ranks are then out of step; it is
  // the last entry.
  std::vector<std::string> failures;
  // What the backend answered UNIMPLEMENTED to, each message once, with the first case it was for.
  std::vector<std::string> unimplemented;
};

CollectiveReport CheckCollectives(const CommUnderTest& comm);

}  // namespace param
