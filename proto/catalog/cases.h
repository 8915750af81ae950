#pragma once
// From what a user typed to the list of cases: parse, multiply, name.
// The grammar of one parameter's text: VALUE[,VALUE...], where for numbers a VALUE may be a range
// FIRST:LAST:xFACTOR or FIRST:LAST:+STEP (both ends included when hit). Sizes take K, KB, KiB, M,
// ... in any case, all powers of 1024. In a kMeasure parameter only one value is allowed.

#include <string>
#include <vector>

#include "proto/catalog/spec.h"

namespace param {

// One combination of parameters.
struct Case {
  std::string id;           // "gemm:v1:k=1024,m=1024": see CaseId
  Params params;            // total: own parameters and the shared measuring group
  std::string set_row;      // "deepbench-train/017" when it came from a problem set, else ""
  std::string application;  // what the set says it is for, else ""
};

inline constexpr std::size_t kMaxCases = 10000;

// The values that `text` means for `spec`, in the order written. Errors name the parameter, the
// value that was wrong and what is allowed; near misses of choices get "did you mean".
absl::StatusOr<std::vector<Value>> ParseValues(const ParamSpec& spec, absl::string_view text);

// Every combination, the first-named parameter of the descriptor varying slowest. `given` may hold
// "set" (a problem set's name): its rows replace the parameters they name, and multiply with the
// rest; giving a parameter that the set names is an error. Of min_time and max_time, the one that
// is not given gives way to the other. Unknown names are errors with "did you mean". More than
// kMaxCases combinations are an error that says how many there would be. Equal cases are kept once.
absl::StatusOr<std::vector<Case>> ExpandCases(const BenchmarkSpec& bench, const GivenParams& given);

// `id:vVERSION:` and the sorted parameters of roles kCase and kMeasureIdentity that differ from
// their defaults; stable text, the key for comparisons.
std::string CaseId(const BenchmarkSpec& bench, const Params& params);

// A value as a user would type it ("1024", "0.5", "true", "f32"); parses back to the same value.
std::string ValueText(const Value& value);

// The full command that repeats this one case: "paramctl submit gemm --m 1024 ...".
std::string ReproLine(const BenchmarkSpec& bench, const Params& params, int nodes,
                      int ranks_per_node, absl::string_view backend);

// How samples are taken, from a case's parameters.
struct MeasureOptions {
  std::int64_t iters = 0;    // 0: until the noise rule or max_time
  std::int64_t warmup = 5;   // iterations
  double min_time_s = 0;     // timed seconds at least
  double max_time_s = 0;     // timed seconds at most
  double noise = 0;          // relative stdev under which sampling may stop
  bool flush_cache = false;  // evict caches before each iteration
  std::string fill;          // normal | uniform | ones | zeros | exact
  std::uint64_t seed = 0;
  bool check = true;
  std::string inject;  // "" or "flip@RANK:INDEX"
  std::string mode;    // isolated | pipelined
};
MeasureOptions MeasureOptionsOf(const Params& params);

// Parsed --inject: which rank flips which output element before the check.
struct Injection {
  bool armed = false;
  int rank = 0;
  std::int64_t index = 0;
};
absl::StatusOr<Injection> ParseInjection(absl::string_view text);

}  // namespace param
