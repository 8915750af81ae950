#pragma once
// The catalogue: one descriptor per benchmark. It alone drives validation (the same code on client
// and server), flags, help, docs, the SQL view and JSON keys.
//
// A descriptor is made by `const BenchmarkSpec& GemmSpec()` in proto/catalog/gemm.cc and listed by
// one line `param_add_benchmark(gemm)` in CMake.

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace param {

// One parameter's value. Bytes are int64, durations are doubles in seconds.
using Value = std::variant<std::int64_t, double, bool, std::string>;

// Every parameter of a benchmark, by name; total after validation.
using Params = std::map<std::string, Value, std::less<>>;

// Parameters as a user typed them, by name: lists and ranges not yet multiplied out.
using GivenParams = std::map<std::string, std::string, std::less<>>;

enum class ParamType { kInt, kBytes, kFloat, kBool, kChoice, kString, kDuration };

// What a parameter decides.
enum class ParamRole {
  kCase,             // what is measured: part of the case's identity; takes lists and ranges
  kMeasureIdentity,  // how it is measured, and comparable only with the same: mode, fill,
                     // flush_cache
  kMeasure,          // how long and how carefully: not part of the identity, one value
};

struct ParamSpec {
  absl::string_view name;  // snake_case; --min-time on the command line, min_time in JSON and SQL
  ParamType type;
  ParamRole role;
  absl::string_view fallback;  // the default as a user would type it; parsed like any input
  double min = 0, max = 0;     // for numbers: inclusive range
  absl::Span<const absl::string_view> choices = {};
  absl::string_view help;  // one clause, no full stop
};

// Named numbers that a rank reports beside its samples for one case (for example "peak").
using Scalars = std::map<std::string, double, std::less<>>;

struct MetricSpec {        // NOLINT(clang-analyzer-optin.performance.Padding): in reading order
  absl::string_view name;  // "time", "flops"
  absl::string_view unit;  // base unit: "s", "FLOP/s", "B/s", "1"
  bool higher_is_better;
  absl::string_view help;  // one clause, with the formula
  // Null: sampled by the driver. Else computed by the coordinator from each sample of `time` (s);
  // NaN means that this case does not have it.
  double (*derive)(const Params& params, const Scalars& scalars, double time_s) = nullptr;
  // Of sampled ones: a rank that gives none has not PASSED. False where some ranks only look on.
  bool every_rank = true;
};

// Bytes one rank needs at its largest moment, verification included.
struct Footprint {
  std::int64_t host_bytes = 0;    // ordinary memory on backends whose device is the CPU
  std::int64_t device_bytes = 0;  // what lies in device memory (on a CPU this is host memory too)
};

// A named list of cases, kept as CSV in proto/catalog/sets/BENCHMARK/NAME.csv: the header names
// parameters, besides `application` (free text). Lines starting with # are its source note.
struct ProblemSet {
  absl::string_view name;  // "deepbench-train"
  absl::string_view csv;
};

// How the samples of the ranks become those of the case.
enum class Pooling {
  kIndependent,  // all of them: the ranks work alone
  kSlowestRank,  // sample i is that of the slowest: the ranks work together
};

struct BenchmarkSpec {
  absl::string_view id;
  int version;                         // raised when a number changes meaning or a default changes
  absl::string_view summary;           // one line
  absl::string_view description;       // paragraphs of Markdown: method, formulas and their sources
  absl::Span<const ParamSpec> params;  // its own; the shared measuring group comes on top
  absl::Span<const MetricSpec> metrics;
  // Overflow and absurd sizes are errors that name the parameter. `ranks` is the job's least number
  // of ranks, at least 1.
  absl::StatusOr<Footprint> (*footprint)(const Params& params, int ranks);
  std::vector<ProblemSet> sets;
  absl::Span<const absl::string_view> examples;  // argument lines after "paramctl submit ID"
  Pooling pooling = Pooling::kIndependent;
  bool needs_comm = false;  // the ranks communicate: a comm backend is chosen when none is named
};

// All benchmarks, in the order of param_add_benchmark(). The file is generated.
const std::vector<const BenchmarkSpec*>& AllBenchmarks();

// By id; NOT_FOUND with "did you mean".
absl::StatusOr<const BenchmarkSpec*> FindBenchmark(absl::string_view id);

// The group of measuring parameters that every benchmark takes.
absl::Span<const ParamSpec> MeasureParams();

// The benchmark's own parameters, then the shared group.
std::vector<const ParamSpec*> AllParams(const BenchmarkSpec& bench);

// "--min-time" for "min_time".
std::string FlagName(absl::string_view param_name);

}  // namespace param
