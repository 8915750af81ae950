#include "proto/catalog/cases.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "proto/base/status.h"
#include "proto/base/text.h"
#include "proto/catalog/problem_sets.h"
#include "proto/catalog/values.h"

namespace param {
namespace {

constexpr absl::string_view kSet = "set";

// One parameter and the values it takes in a job.
struct Axis {
  const ParamSpec* spec;
  std::vector<Value> values;
};

// A problem set's row, parsed.
struct Row {
  std::string name;  // "deepbench-train/017"
  std::string application;
  Params params;
};

// What a given job multiplies out.
struct Plan {
  std::vector<Row> rows;  // one empty row without a set
  std::vector<Axis> axes;
  std::set<std::string, std::less<>> named_by_set;
};

absl::Status CheckNames(const BenchmarkSpec& bench, const GivenParams& given) {
  std::vector<std::string> known;
  for (const ParamSpec* spec : AllParams(bench)) known.emplace_back(spec->name);
  if (!bench.sets.empty()) known.emplace_back(kSet);
  for (const auto& [name, text] : given) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string near = NearestName(name, known);
    return absl::InvalidArgumentError(
        absl::StrCat(bench.id, " has no parameter ", Quoted(FlagName(name)),
                     near.empty() ? "" : absl::StrCat("; did you mean \"", FlagName(near), "\"?")));
  }
  return absl::OkStatus();
}

absl::StatusOr<const ProblemSet*> FindSet(const BenchmarkSpec& bench, absl::string_view name) {
  std::vector<std::string> names;
  for (const ProblemSet& set : bench.sets) {
    if (set.name == name) return &set;
    names.emplace_back(set.name);
  }
  return absl::InvalidArgumentError(absl::StrCat("--set: ", Quoted(name), " is not one of ",
                                                 absl::StrJoin(names, ", "),
                                                 DidYouMean(name, names)));
}

const ParamSpec* FindParam(const BenchmarkSpec& bench, absl::string_view name) {
  for (const ParamSpec* spec : AllParams(bench)) {
    if (spec->name == name) return spec;
  }
  return nullptr;
}

absl::StatusOr<Row> ParseRow(const BenchmarkSpec& bench, const ProblemRow& texts,
                             std::string row_name) {
  Row row = {std::move(row_name), texts.application, {}};
  for (const auto& [name, text] : texts.params) {
    const ParamSpec* spec = FindParam(bench, name);
    if (spec == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(row.name, ": ", bench.id, " has no parameter ", Quoted(name)));
    }
    PARAM_ASSIGN_OR_RETURN(const std::vector<Value> values, ParseValues(*spec, text), row.name);
    if (values.size() != 1) {
      return absl::InvalidArgumentError(absl::StrCat(row.name, ": ", name, " is not one value"));
    }
    row.params[name] = values.front();
  }
  return row;
}

absl::Status AddSet(const BenchmarkSpec& bench, const GivenParams& given, absl::string_view name,
                    Plan* plan) {
  PARAM_ASSIGN_OR_RETURN(const ProblemSet* const set, FindSet(bench, name));
  PARAM_ASSIGN_OR_RETURN(const ProblemTable table, ParseProblemSet(*set));
  for (const std::string& param : table.names) {
    if (given.contains(param)) {
      return absl::InvalidArgumentError(absl::StrCat(FlagName(param), ": the problem set ", name,
                                                     " gives this; leave out one of the two"));
    }
    plan->named_by_set.insert(param);
  }
  plan->rows.clear();
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    PARAM_ASSIGN_OR_RETURN(Row row,
                           ParseRow(bench, table.rows[i], absl::StrFormat("%s/%03d", name, i + 1)));
    plan->rows.push_back(std::move(row));
  }
  return absl::OkStatus();
}

// A limit that was not given follows the one that was: `--max-time 0.3` alone samples for 0.3 s,
// and
// `--min-time 10` alone for 10 s.
void FitTimeLimits(const GivenParams& given, Plan* plan) {
  Value* min_time = nullptr;
  Value* max_time = nullptr;
  for (Axis& axis : plan->axes) {
    if (axis.spec->name == "min_time") min_time = &axis.values.front();
    if (axis.spec->name == "max_time") max_time = &axis.values.front();
  }
  if (min_time == nullptr || max_time == nullptr) return;
  if (std::get<double>(*min_time) <= std::get<double>(*max_time)) return;
  if (!given.contains("min_time")) {
    *min_time = *max_time;
  } else if (!given.contains("max_time")) {
    *max_time = *min_time;
  }
}

absl::StatusOr<Plan> MakePlan(const BenchmarkSpec& bench, const GivenParams& given) {
  PARAM_RETURN_IF_ERROR(CheckNames(bench, given));
  Plan plan;
  plan.rows.resize(1);
  if (const auto set = given.find(kSet); set != given.end()) {
    PARAM_RETURN_IF_ERROR(AddSet(bench, given, set->second, &plan));
  }
  for (const ParamSpec* spec : AllParams(bench)) {
    if (plan.named_by_set.contains(spec->name)) continue;
    const auto text = given.find(spec->name);
    PARAM_ASSIGN_OR_RETURN(
        std::vector<Value> values,
        ParseValues(*spec, text == given.end() ? spec->fallback : absl::string_view(text->second)));
    plan.axes.push_back({spec, std::move(values)});
  }
  FitTimeLimits(given, &plan);
  return plan;
}

absl::Status CheckCount(const Plan& plan) {
  std::uint64_t count = plan.rows.size();
  for (const Axis& axis : plan.axes) {
    if (__builtin_mul_overflow(count, axis.values.size(), &count)) {
      count = std::numeric_limits<std::uint64_t>::max();
      break;
    }
  }
  if (count <= kMaxCases) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the parameters multiply into ", count,
                                                 " cases; at most ", kMaxCases,
                                                 " are allowed in one job"));
}

// Rules between measuring parameters; they have one value each, so any case shows them.
absl::Status CheckMeasuring(const MeasureOptions& options) {
  if (options.min_time_s > options.max_time_s) {
    return absl::InvalidArgumentError(absl::StrCat("--min-time: ", FormatDouble(options.min_time_s),
                                                   " s is above --max-time, ",
                                                   FormatDouble(options.max_time_s), " s"));
  }
  PARAM_ASSIGN_OR_RETURN(const Injection injection, ParseInjection(options.inject));
  if (injection.armed && !options.check) {
    return absl::InvalidArgumentError("--inject: tests the check, which --no-check leaves out");
  }
  return absl::OkStatus();
}

std::string EscapeForId(absl::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain =
        absl::ascii_isgraph(static_cast<unsigned char>(c)) && c != ',' && c != '=' && c != '%';
    if (plain) {
      out.push_back(c);
    } else {
      absl::StrAppend(&out, "%", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    }
  }
  return out;
}

// The parameters of an identity with their defaults, sorted by name: made once for many cases.
using IdentityDefaults = std::map<absl::string_view, Value>;

IdentityDefaults IdentityDefaultsOf(const BenchmarkSpec& bench) {
  IdentityDefaults defaults;
  for (const ParamSpec* spec : AllParams(bench)) {
    if (spec->role != ParamRole::kMeasure) defaults.emplace(spec->name, DefaultValue(*spec));
  }
  return defaults;
}

std::string MakeId(const BenchmarkSpec& bench, const IdentityDefaults& defaults,
                   const Params& params) {
  std::string id = absl::StrCat(bench.id, ":v", bench.version, ":");
  absl::string_view separator = "";
  for (const auto& [name, fallback] : defaults) {
    const auto it = params.find(name);
    if (it == params.end() || it->second == fallback) continue;
    absl::StrAppend(&id, separator, name, "=", EscapeForId(ValueText(it->second)));
    separator = ",";
  }
  return id;
}

// Quotes a word for a POSIX shell where it needs it.
std::string ShellWord(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("-_.,:/@+=", c);
  });
  if (plain) return word;
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

}  // namespace

absl::StatusOr<std::vector<Case>> ExpandCases(const BenchmarkSpec& bench,
                                              const GivenParams& given) {
  PARAM_ASSIGN_OR_RETURN(const Plan plan, MakePlan(bench, given));
  PARAM_RETURN_IF_ERROR(CheckCount(plan));
  const IdentityDefaults defaults = IdentityDefaultsOf(bench);
  std::vector<Case> cases;
  std::set<std::string> seen;
  for (const Row& row : plan.rows) {
    std::vector<std::size_t> at(plan.axes.size(), 0);
    bool more = true;
    while (more) {
      Case made = {"", row.params, row.name, row.application};
      for (std::size_t i = 0; i < at.size(); ++i) {
        made.params.emplace(plan.axes[i].spec->name, plan.axes[i].values[at[i]]);
      }
      made.id = MakeId(bench, defaults, made.params);
      if (seen.insert(made.id).second) cases.push_back(std::move(made));
      more = false;
      for (std::size_t i = at.size(); i-- > 0 && !more;) {  // the last axis runs fastest
        more = ++at[i] < plan.axes[i].values.size();
        if (!more) at[i] = 0;
      }
    }
  }
  if (cases.empty()) return absl::InvalidArgumentError("the problem set has no rows");
  PARAM_RETURN_IF_ERROR(CheckMeasuring(MeasureOptionsOf(cases.front().params)));
  return cases;
}

std::string CaseId(const BenchmarkSpec& bench, const Params& params) {
  return MakeId(bench, IdentityDefaultsOf(bench), params);
}

std::string ReproLine(const BenchmarkSpec& bench, const Params& params, int nodes,
                      int ranks_per_node, absl::string_view backend) {
  std::string line = absl::StrCat("paramctl submit ", bench.id);
  for (const ParamSpec* spec : AllParams(bench)) {
    const auto it = params.find(spec->name);
    if (it == params.end()) continue;
    const bool is_default = it->second == DefaultValue(*spec);
    if (const auto* flag = std::get_if<bool>(&it->second)) {
      if (is_default) continue;
      const std::string name = FlagName(spec->name);
      absl::StrAppend(&line, " ", *flag ? name : absl::StrCat("--no-", name.substr(2)));
    } else if (spec->role == ParamRole::kCase || !is_default) {
      absl::StrAppend(&line, " ", FlagName(spec->name), " ", ShellWord(ValueText(it->second)));
    }
  }
  absl::StrAppend(&line, " --nodes ", nodes, " --ranks-per-node ", ranks_per_node);
  if (!backend.empty()) absl::StrAppend(&line, " --backend ", ShellWord(std::string(backend)));
  return line;
}

}  // namespace param
