// The parameters of measuring that every benchmark takes.

#include <charconv>
#include <limits>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/catalog/cases.h"
#include "proto/catalog/values.h"

namespace param {
namespace {

constexpr absl::string_view kFills[] = {"normal", "uniform", "ones", "zeros", "exact"};
constexpr absl::string_view kModes[] = {"isolated", "pipelined"};
constexpr double kLargestSeed = 9007199254740991;  // 2^53 - 1: exact in any JSON reader

constexpr ParamSpec kMeasureParams[] = {
    {"iters",
     ParamType::kInt,
     ParamRole::kMeasure,
     "0",
     0,
     1'000'000,
     {},
     "timed samples per case (in mode pipelined: batches); 0 lets the time and noise rules decide"},
    {"warmup",
     ParamType::kInt,
     ParamRole::kMeasure,
     "5",
     0,
     1'000'000,
     {},
     "untimed iterations before the first sample"},
    {"min_time",
     ParamType::kDuration,
     ParamRole::kMeasure,
     "0.5",
     0,
     86400,
     {},
     "sample at least this long; alone above --max-time it raises that"},
    {"max_time",
     ParamType::kDuration,
     ParamRole::kMeasure,
     "2",
     0,
     86400,
     {},
     "stop sampling after this long, however noisy; alone below --min-time it lowers that"},
    {"noise",
     ParamType::kFloat,
     ParamRole::kMeasure,
     "0.01",
     0,
     1,
     {},
     "stop once the relative standard deviation is below this"},
    {"flush_cache",
     ParamType::kBool,
     ParamRole::kMeasureIdentity,
     "false",
     0,
     0,
     {},
     "evict the caches before each iteration"},
    {"fill", ParamType::kChoice, ParamRole::kMeasureIdentity, "normal", 0, 0, kFills,
     "what the inputs are filled with; exact is small integers whose sums are exact in any order"},
    {"seed",
     ParamType::kInt,
     ParamRole::kMeasure,
     "0",
     0,
     kLargestSeed,
     {},
     "seed of the fill; each rank derives its own from it"},
    {"check",
     ParamType::kBool,
     ParamRole::kMeasure,
     "true",
     0,
     0,
     {},
     "verify results outside the timed region"},
    {"inject",
     ParamType::kString,
     ParamRole::kMeasure,
     "",
     0,
     0,
     {},
     "flip@RANK:INDEX corrupts one output element before the check, which must then say WRONG"},
    {"mode", ParamType::kChoice, ParamRole::kMeasureIdentity, "isolated", 0, 0, kModes,
     "isolated times each iteration alone; pipelined issues them back to back in batches"},
};

}  // namespace

absl::Span<const ParamSpec> MeasureParams() { return kMeasureParams; }

MeasureOptions MeasureOptionsOf(const Params& params) {
  MeasureOptions options;
  options.iters = IntParam(params, "iters", 0);
  options.warmup = IntParam(params, "warmup", 5);
  options.min_time_s = FloatParam(params, "min_time", 0.5);
  options.max_time_s = FloatParam(params, "max_time", 2);
  options.noise = FloatParam(params, "noise", 0.01);
  options.flush_cache = BoolParam(params, "flush_cache", false);
  options.fill = TextParam(params, "fill", "normal");
  options.seed = static_cast<std::uint64_t>(IntParam(params, "seed", 0));
  options.check = BoolParam(params, "check", true);
  options.inject = TextParam(params, "inject", "");
  options.mode = TextParam(params, "mode", "isolated");
  return options;
}

absl::StatusOr<Injection> ParseInjection(absl::string_view text) {
  Injection injection;
  if (text.empty()) return injection;
  const auto bad = [text] {
    return absl::InvalidArgumentError(
        absl::StrCat("--inject: ", Quoted(text), " is not flip@RANK:INDEX, for example flip@0:17"));
  };
  absl::string_view rest = text;
  if (!absl::ConsumePrefix(&rest, "flip@")) return bad();
  const char* const end = rest.data() + rest.size();
  const auto rank = std::from_chars(rest.data(), end, injection.rank);
  if (rank.ec != std::errc() || rank.ptr == end || *rank.ptr != ':') return bad();
  const auto index = std::from_chars(rank.ptr + 1, end, injection.index);
  if (index.ec != std::errc() || index.ptr != end) return bad();
  if (injection.rank < 0 || injection.index < 0) return bad();
  injection.armed = true;
  return injection;
}

}  // namespace param
