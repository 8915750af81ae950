#pragma once
// Messages between a worker and its agent: JSON lines over a Unix socket, at most kMaxLineBytes
// each from a worker and kMaxAgentLineBytes from an agent. The agent treats every line of a worker
// as hostile. No protobuf here: a worker may load a backend that brings its own.
//
// A line is {"type": "...", ...}; bytes are base64; samples are base64 of little-endian doubles.
// Order: the worker sends Hello; the agent answers with Assignment; then events flow up, Exchange
// rounds go both ways; the worker ends with Done or Failure and exits. A worker that reads end of
// file leaves at once.

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/catalog/spec.h"

namespace param::line {

inline constexpr std::size_t kMaxLineBytes = 1 << 20;
// An agent is trusted, and its assignments (kMaxCases cases) and replies (one part per rank) are
// larger.
inline constexpr std::size_t kMaxAgentLineBytes = 64 << 20;
// So that one Samples line stays under kMaxLineBytes.
inline constexpr std::size_t kMaxSamplesPerLine = 65536;

using Labels = std::map<std::string, std::string>;  // bounded: kMaxLabels, short values
inline constexpr std::size_t kMaxLabels = 8;

// The phases of a rank, in order; warm-up and timed repeat per case.
enum class Phase { kPlace, kSpawn, kRendezvous, kCommInit, kVerify, kWarmup, kTimed, kTeardown };
absl::string_view PhaseName(Phase phase);  // "place", "spawn", "rendezvous", "comm_init", ...
absl::StatusOr<Phase> PhaseFromName(absl::string_view name);

enum class CaseStatus { kPassed, kWrong, kSkipped, kFailed };  // ascending badness is in core
absl::string_view CaseStatusName(CaseStatus status);           // "PASSED", ...
absl::StatusOr<CaseStatus> CaseStatusFromName(absl::string_view name);

// ---- worker to agent -------------------------------------------------------------------------

struct Hello {
  std::string token;  // one-time, from the environment
  std::int64_t pid = 0;
  int protocol = 0;  // kProtocolVersion
  std::string version;
};
struct PhaseBegin {
  Phase phase = Phase::kSpawn;
  std::int64_t case_index = -1;  // -1 outside a case
};
struct PhaseEnd {
  Phase phase = Phase::kSpawn;
  std::int64_t case_index = -1;
};
// This rank's part of round `round` (0, 1, ...): every rank sends one, every rank gets all.
struct Exchange {
  std::uint64_t round = 0;
  std::string data;  // bytes; at most kMaxExchangeBytes
};
inline constexpr std::size_t kMaxExchangeBytes = 64 << 10;
struct CaseBegin {
  std::int64_t case_index = 0;
};
struct Samples {
  std::int64_t case_index = 0;
  std::string metric;  // "time"
  std::string unit;    // "s"
  Labels labels;
  std::vector<double> values;
};
struct CaseEnd {
  std::int64_t case_index = 0;
  CaseStatus status = CaseStatus::kFailed;
  std::string reason;  // goes with all but PASSED
  Scalars scalars;     // "peak": FLOP/s, "max_error", "timer_overhead": s, ...
  std::map<std::string, std::string>
      info;  // "library": "onednn 2.6.0 sgemm", "stopped_by": "noise"
};
// Facts about where this rank ran: affinity, threads, library versions, clocks. Values are text.
struct Environment {
  std::map<std::string, std::string> facts;
};
// Ends the rank: it exits after it.
struct Failure {
  std::string code;  // CodeName() of the status
  Phase phase = Phase::kSpawn;
  std::string cause;
  std::string address;  // of the peer or device concerned, else ""
  int error_number = 0;
  std::int64_t case_index = -1;
};
struct LogLine {
  std::string level;  // debug | info | warn | error
  std::string text;
};
// All cases ended; the rank exits with 0 after it.
struct Done {};

using FromWorker = std::variant<Hello, PhaseBegin, PhaseEnd, Exchange, CaseBegin, Samples, CaseEnd,
                                Environment, Failure, LogLine, Done>;

// ---- agent to worker -------------------------------------------------------------------------

struct AssignedCase {
  std::int64_t index = 0;
  std::string id;
  Params params;
};
struct Assignment {
  std::string job_id;
  int attempt = 0;
  std::string benchmark;
  int benchmark_version = 0;
  int rank = 0, ranks = 1;              // over the attempt
  int local_rank = 0, local_ranks = 1;  // on this node
  std::vector<std::string> rank_nodes;  // node name of each rank
  std::string device_backend;           // "cpu"
  std::string device_backend_path;      // the .so
  std::vector<std::string> comm_backend_paths;
  int device_index = 0;
  std::vector<int> cpus;  // to bind to; empty: leave alone
  int threads = 1;
  std::map<std::string, std::string> attachments;  // name to path
  std::string fake_script;                         // path of the fake backend's script, else ""
  std::vector<AssignedCase> cases;
};
struct ExchangeReply {
  std::uint64_t round = 0;
  std::vector<std::string> data;  // by rank
};
// Stop after the current iteration, report, leave.
struct Cancel {
  std::string reason;
};
// Another rank failed: leave now.
struct Abort {
  std::string reason;
};
// Events up to and with this number of lines were taken over; for flow control only.
struct Ack {
  std::uint64_t lines = 0;
};

using FromAgent = std::variant<Assignment, ExchangeReply, Cancel, Abort, Ack>;

// One line, with its newline. Never fails: strings that are not UTF-8 are escaped lossily, reasons,
// facts and logs are cut to a few KiB. REQUIRES: at most kMaxSamplesPerLine samples, kMaxLabels
// labels, kMaxExchangeBytes of exchanged data; names without blanks, commas and equals signs.
std::string Encode(const FromWorker& message);
std::string Encode(const FromAgent& message);

// Total on any bytes: never crashes, never allocates more than a small multiple of the line.
// INVALID_ARGUMENT says what was wrong. Unknown keys are ignored, unknown types are errors.
absl::StatusOr<FromWorker> DecodeFromWorker(absl::string_view line);
absl::StatusOr<FromAgent> DecodeFromAgent(absl::string_view line);

// Splits a byte stream into lines. Feed() any pieces; Next() gives complete lines. Not thread safe.
class LineReader {
 public:
  // Agents read with the default, workers with kMaxAgentLineBytes.
  explicit LineReader(std::size_t max_line_bytes = kMaxLineBytes)
      : max_line_bytes_(max_line_bytes) {}

  // RESOURCE_EXHAUSTED once a line exceeds the limit; the reader is dead after that, but gives the
  // lines before it.
  absl::Status Feed(absl::string_view bytes);
  // False when no complete line is there.
  bool Next(std::string* line);

 private:
  std::size_t max_line_bytes_;
  std::string buffer_;
  std::size_t begin_ = 0;    // start of the first line not yet given
  std::size_t scanned_ = 0;  // no newline between begin_ and here
  std::size_t open_ = 0;     // bytes after the last newline
  bool dead_ = false;
};

}  // namespace param::line
