#pragma once
// The fake backend's script: JSON text that the worker hands over in param_host.script. An empty
// script is an honest device with real times.
//
//   {"latency_ns": 20000, "jitter_ns": 500, "rank_latency_ns": {"1": 60000}, "real_time": false,
//    "faults": [{"at": "timed", "kind": "crash", "rank": 1, "after": 3}]}
//
// latency_ns       time of one operation by the device's own clock, which is then a virtual one
// jitter_ns        up to so much is added, by a generator seeded with the rank
// rank_latency_ns  the same for some ranks: slow ones
// real_time        also sleep for that long
// faults           see faults.h; "at" is "spawn", "comm_init", "case", "verify", "warmup", "timed"
// or
//                  "teardown", "rank" -1 means all, "after" lets so many pass first

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/backend/kit.h"

namespace param::fake {

struct Fault {
  std::string at;
  std::string kind;
  int rank = -1;
  std::int64_t after = 0;
  int code = kit::kInternal;      // of kind "error"
  std::string text;               // message of "error"; what "garbage" writes
  std::int64_t count = 20000;     // lines of "flood"
  std::int64_t bytes = 64 << 20;  // of "fill_disk"
};

struct Script {
  std::optional<double> latency_ns;
  double jitter_ns = 0;
  std::map<int, double> rank_latency_ns;
  bool real_time = false;
  std::vector<Fault> faults;

  // Of one operation on `rank`; nothing when the script sets no times.
  std::optional<double> LatencyNs(int rank) const;
};

// INVALID_ARGUMENT says what is wrong with the text.
std::int32_t ParseScript(const char* text, Script* out, param_error* err);

}  // namespace param::fake
