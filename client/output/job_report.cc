#include "client/output/job_report.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "client/output/case_view.h"
#include "client/output/collective_table.h"
#include "client/output/job_table.h"
#include "proto/base/text.h"
#include "proto/catalog/cases.h"
#include "proto/convert/names.h"
#include "proto/convert/values.h"

namespace param {
namespace {

constexpr std::size_t kNamesShown = 8;
constexpr std::size_t kNodesShown = 16;
constexpr std::size_t kRepeatsShown = 3;

std::string Seconds(std::int64_t from_ns, std::int64_t to_ns) {
  return FormatSi(static_cast<double>(to_ns - from_ns) * 1e-9, "s");
}

// "3 passed, 1 wrong", worst last.
std::string CountText(const v1::GetJobResponse& response) {
  std::map<v1::CaseStatus, int> counts;
  for (const v1::CaseResult& result : response.cases()) ++counts[result.status()];
  std::vector<std::string> parts;
  for (const auto& [status, word] : {std::pair{v1::PASSED, "passed"},
                                     {v1::SKIPPED, "skipped"},
                                     {v1::WRONG, "wrong"},
                                     {v1::FAILED_CASE, "failed"},
                                     {v1::CASE_STATUS_UNSPECIFIED, "not run"}}) {
    if (counts[status] > 0) parts.push_back(absl::StrCat(counts[status], " ", word));
  }
  return parts.empty() ? "no cases" : absl::StrJoin(parts, ", ");
}

std::vector<std::string> NodeNames(const v1::Job& job) {
  return {job.nodes().begin(), job.nodes().end()};
}

// "nccl-tests" for results that `result import` added, else "".
std::string ImportedFrom(const v1::Job& job) {
  absl::string_view source = job.spec().source();
  return absl::ConsumePrefix(&source, "import:") ? std::string(source) : "";
}

std::string StateLine(const v1::GetJobResponse& response, bool color) {
  const v1::Job& job = response.job();
  std::string line = absl::StrCat("job ", job.job_id(), " ",
                                  Paint(WireJobStateName(job.state()), StyleOf(job.state()), color),
                                  ": ", CountText(response));
  if (job.nodes_size() > 0) {
    absl::StrAppend(&line, "; ", job.ranks(), job.ranks() == 1 ? " rank on " : " ranks on ",
                    NamesText(NodeNames(job), kNamesShown), ", backend ", job.backend());
  }
  if (const std::string tool = ImportedFrom(job); !tool.empty()) {
    absl::StrAppend(&line,
                    job.nodes_size() > 0
                        ? ""
                        : absl::StrCat("; ", job.ranks(), " ranks, backend ", job.backend()),
                    "; imported from ", tool);
    return line;
  }
  const v1::Timeline& times = job.timeline();
  if (times.finished() > 0 && times.submitted() > 0) {
    absl::StrAppend(&line, "; ", Seconds(times.submitted(), times.finished()));
    if (times.placed() > 0) {
      absl::StrAppend(&line, ", of which ", Seconds(times.submitted(), times.placed()), " queued");
    }
  }
  return line;
}

// One value of all ranks, or that they differ.
std::string FactText(const v1::GetJobResponse& response, const std::string& key) {
  std::set<std::string> values;
  for (const v1::RankEnvironment& rank : response.environment()) {
    const auto it = rank.facts().find(key);
    if (it != rank.facts().end()) values.insert(it->second);
  }
  if (values.empty()) return "";
  if (values.size() == 1) return absl::StrCat(key, "=", *values.begin());
  return absl::StrCat(key, " differs among ranks (", values.size(), " values)");
}

// What decides about speed first; the libraries by their prefix. `job show -o json` has all.
std::string EnvironmentLine(const v1::GetJobResponse& response) {
  std::vector<std::string> keys = {"governor", "threads", "kernel", "revision"};
  std::set<std::string> libraries;
  for (const v1::RankEnvironment& rank : response.environment()) {
    for (const auto& [key, value] : rank.facts()) {
      if (absl::StartsWith(key, "library.") || absl::StartsWith(key, "backend.")) {
        libraries.insert(key);
      }
    }
  }
  keys.insert(keys.begin(), libraries.begin(), libraries.end());
  std::vector<std::string> facts;
  for (const std::string& key : keys) {
    std::string fact = SafeText(FactText(response, key));
    if (!fact.empty()) facts.push_back(std::move(fact));
  }
  return absl::StrJoin(facts, "; ");
}

std::string ShellWord(const std::string& text) {
  const bool plain = !text.empty() && text.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789-_./:,+=@%") == std::string::npos;
  return plain ? text : absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string SubmittedCommand(const v1::JobSpec& spec) {
  std::string line = absl::StrCat("paramctl submit ", spec.benchmark());
  for (const auto& [name, text] :
       std::map<std::string, std::string>(spec.params().begin(), spec.params().end())) {
    absl::StrAppend(&line, " ", FlagName(name), "=", ShellWord(text));
  }
  absl::StrAppend(&line, " --nodes ", spec.nodes());
  if (spec.ranks_per_node() > 0) {
    absl::StrAppend(&line, " --ranks-per-node ", spec.ranks_per_node());
  }
  if (!spec.interface().empty()) absl::StrAppend(&line, " --interface ", spec.interface());
  if (!spec.backend().empty() && spec.backend() != "auto") {
    absl::StrAppend(&line, " --backend ", ShellWord(spec.backend()));
  }
  return line;
}

int RanksPerNode(const v1::Job& job) {
  return job.nodes_size() > 0 ? job.ranks() / job.nodes_size() : job.spec().ranks_per_node();
}

std::string CaseCommand(const v1::Job& job, const v1::CaseResult& result) {
  const BenchmarkSpec* bench = SpecOf(job.spec().benchmark());
  const absl::StatusOr<Params> params = ParamsFromProto(result.params());
  if (bench == nullptr || !params.ok()) return "";
  return ReproLine(*bench, *params, job.nodes_size() > 0 ? job.nodes_size() : job.spec().nodes(),
                   RanksPerNode(job), job.backend());
}

// For each of the first cases that did not pass: the command that repeats it alone.
void PrintBadCases(const v1::GetJobResponse& response, std::ostream& out) {
  std::size_t shown = 0;
  for (const v1::CaseResult& result : response.cases()) {
    if (result.status() != v1::WRONG && result.status() != v1::FAILED_CASE) continue;
    if (response.cases_size() == 1 || ++shown > kRepeatsShown) return;
    const std::string command = CaseCommand(response.job(), result);
    if (!command.empty()) {
      out << "repeat case " << result.case_index() << " (" << WireCaseStatusName(result.status())
          << "): " << command << "\n";
    }
  }
}

// One table; of collectives one for each operation and type.
void PrintCases(const v1::GetJobResponse& response, const TextOptions& options, std::ostream& out) {
  const absl::StatusOr<std::vector<CollectiveTable>> sweeps = CollectiveTables(response);
  if (!sweeps.ok()) {
    RenderText(CaseTable(response.job(), ListCases(response)), options, out);
    out << "\n";
    return;
  }
  for (const CollectiveTable& sweep : *sweeps) {
    out << Paint(sweep.title, Style::kBold, options.color) << "\n";
    RenderText(sweep.table, options, out);
    out << "\n";
  }
}

// What imported numbers are that are no summary of samples.
std::set<std::string> Statistics(const v1::GetJobResponse& response) {
  std::set<std::string> out;
  for (const v1::CaseResult& result : response.cases()) {
    const auto it = result.info().find("statistic");
    if (it != result.info().end()) out.insert(it->second);
  }
  return out;
}

void PrintNotes(const v1::GetJobResponse& response, const TextOptions& options, std::ostream& out) {
  const v1::Job& job = response.job();
  if (job.has_failure() && !job.failure().code().empty()) {
    out << Paint("failure", Style::kBad, options.color) << ": " << FailureText(job.failure())
        << "\n";
  }
  if (!job.reason().empty()) out << "reason: " << SafeText(job.reason()) << "\n";
  for (const std::string& statistic : Statistics(response)) {
    out << "numbers: " << SafeText(statistic) << ", no samples\n";
  }
  if (job.oversubscribed()) {
    out << Paint("oversubscribed", Style::kWarn, options.color)
        << ": ranks on one machine share cores, so these times are not the machine's best\n";
  }
  for (const v1::CaseResult& result : response.cases()) {
    const auto it = result.info().find("mistrusted");
    if (it == result.info().end()) continue;
    out << Paint("mistrusted", Style::kWarn, options.color) << ": " << SafeText(result.case_id())
        << ": " << SafeText(it->second) << "\n";
  }
}

}  // namespace

std::string NamesText(const std::vector<std::string>& names, std::size_t limit) {
  if (names.size() <= limit) return absl::StrJoin(names, ", ");
  const std::vector<std::string> first(names.begin(),
                                       names.begin() + static_cast<std::ptrdiff_t>(limit));
  return absl::StrCat(absl::StrJoin(first, ", "), " and ", names.size() - limit, " more");
}

std::string FailureText(const v1::Failure& failure) {
  std::string text = failure.phase().empty() ? "job" : failure.phase();
  if (!failure.node().empty()) absl::StrAppend(&text, " on ", failure.node());
  if (failure.rank() >= 0) absl::StrAppend(&text, " (rank ", failure.rank(), ")");
  absl::StrAppend(&text, ": ", failure.code(), ": ", failure.cause());
  std::vector<std::string> details;
  if (!failure.address().empty()) details.push_back(failure.address());
  if (failure.error_number() != 0) {
    details.push_back(absl::StrCat("errno ", failure.error_number()));
  }
  if (!details.empty()) absl::StrAppend(&text, " (", absl::StrJoin(details, ", "), ")");
  return SafeText(text);
}

std::string RepeatCommand(const v1::GetJobResponse& response) {
  if (!ImportedFrom(response.job()).empty()) return "";
  if (response.cases_size() == 1) {
    std::string command = CaseCommand(response.job(), response.cases(0));
    if (!command.empty()) return command;
  }
  return SubmittedCommand(response.job().spec());
}

void PrintJobReport(const v1::GetJobResponse& response, const TextOptions& options,
                    std::ostream& out) {
  const CaseList cases = ListCases(response);
  if (!cases.empty()) PrintCases(response, options, out);
  const Table nodes =
      NodeTimeTable(response.job(), cases, options.wide ? std::size_t{1} << 20 : kNodesShown);
  if (!nodes.rows.empty()) {
    RenderText(nodes, options, out);
    const std::size_t all = static_cast<std::size_t>(response.job().nodes_size());
    if (nodes.rows.size() < all && !options.wide) {
      out << "(the " << nodes.rows.size() << " slowest of " << all
          << " nodes; -o wide shows all)\n";
    }
    out << "\n";
  }
  out << StateLine(response, options.color) << "\n";
  PrintNotes(response, options, out);
  const std::string environment = EnvironmentLine(response);
  if (!environment.empty()) out << "environment: " << environment << "\n";
  PrintBadCases(response, out);
  const std::string repeat = RepeatCommand(response);
  if (!repeat.empty()) out << "repeat: " << repeat << "\n";
}

Table JobFactsTable(const v1::GetJobResponse& response) {
  const v1::Job& job = response.job();
  Table table;
  table.columns = {{"fact", "", "", Align::kLeft, Scale::kPlain, false},
                   {"value", "", "", Align::kLeft, Scale::kPlain, false}};
  const auto add = [&table](const char* fact, std::string value, Style style = Style::kPlain) {
    if (!value.empty()) table.rows.push_back({{std::string(fact)}, {std::move(value), style}});
  };
  add("job", job.job_id());
  add("name", job.spec().name());
  add("benchmark", absl::StrCat(job.spec().benchmark(), " v", job.benchmark_version()));
  add("state", WireJobStateName(job.state()), StyleOf(job.state()));
  add("reason", job.reason());
  if (job.has_failure() && !job.failure().code().empty()) {
    add("failure", FailureText(job.failure()), Style::kBad);
  }
  add("owner", absl::StrCat(job.owner(), " (", job.spec().source(), ")"));
  add("backend", job.backend().empty() ? job.spec().backend() : job.backend());
  if (job.nodes_size() > 0) {
    add("nodes", NamesText(NodeNames(job), kNodesShown));
  } else if (ImportedFrom(job).empty()) {
    add("nodes", absl::StrCat(job.spec().nodes(), ", not placed yet"));
  }
  if (job.ranks() > 0) add("ranks", absl::StrCat(job.ranks()));
  add("attempt", absl::StrCat(job.attempt(), " of ", job.spec().retries() + 1, " at most"));
  add("priority", absl::StrCat(job.spec().priority()));
  add("cases", absl::StrCat(job.cases_done(), " of ", job.cases_total(), " done"));
  const v1::Timeline& times = job.timeline();
  for (const auto& [name, ns] : {std::pair{"submitted", times.submitted()},
                                 {"placed", times.placed()},
                                 {"spawned", times.spawned()},
                                 {"rendezvous", times.rendezvous()},
                                 {"comm_init", times.comm_init()},
                                 {"warmup", times.warmup()},
                                 {"first_timed", times.first_timed()},
                                 {"finished", times.finished()}}) {
    if (ns == 0) continue;
    std::string when =
        absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromUnixNanos(ns), absl::UTCTimeZone());
    if (ns != times.submitted()) absl::StrAppend(&when, "  +", Seconds(times.submitted(), ns));
    add(name, std::move(when));
  }
  add("environment", EnvironmentLine(response));
  add("repeat", RepeatCommand(response));
  return table;
}

void PrintJobFacts(const v1::GetJobResponse& response, const TextOptions& options,
                   std::ostream& out) {
  TextOptions plain = options;
  plain.header = false;
  RenderText(JobFactsTable(response), plain, out);
}

}  // namespace param
