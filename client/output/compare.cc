#include "client/output/compare.h"

#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/output/case_view.h"
#include "client/output/job_report.h"
#include "client/output/job_table.h"
#include "proto/convert/names.h"

namespace param {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kNodesShown = 4;

const v1::Summary* TimeOf(const v1::CaseResult& result) {
  if (result.status() != v1::PASSED) return nullptr;
  const v1::Summary* time = FindSummary(result, "time", -1);
  return time != nullptr && time->p50() > 0 ? time : nullptr;
}

Verdict Judge(const v1::Summary* a, const v1::Summary* b) {
  if (a == nullptr || b == nullptr) return Verdict::kNoTime;
  if (a->n() < 2 || b->n() < 2) return Verdict::kNoNoise;
  if (b->ci95_low() > a->ci95_high()) return Verdict::kSlower;
  if (b->ci95_high() < a->ci95_low()) return Verdict::kFaster;
  return Verdict::kSame;
}

std::map<std::string, const v1::CaseResult*> ByIdentity(const v1::GetJobResponse& response) {
  std::map<std::string, const v1::CaseResult*> cases;
  for (const v1::CaseResult& result : response.cases()) cases.emplace(result.case_id(), &result);
  return cases;
}

Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json SideJson(const v1::CaseResult& result, const v1::Summary* time) {
  Json out = {{"status", WireCaseStatusName(result.status())}, {"time", nullptr}};
  if (time == nullptr) return out;
  out["time"] = {{"n", time->n()},
                 {"p50", Number(time->p50())},
                 {"ci95", Json::array({Number(time->ci95_low()), Number(time->ci95_high())})}};
  return out;
}

Json IdsJson(const std::vector<const v1::CaseResult*>& cases) {
  Json out = Json::array();
  for (const v1::CaseResult* result : cases) out.push_back(result->case_id());
  return out;
}

}  // namespace

std::string VerdictText(Verdict verdict) {
  switch (verdict) {
    case Verdict::kSame:
      return "same";
    case Verdict::kFaster:
      return "faster";
    case Verdict::kSlower:
      return "slower";
    case Verdict::kNoNoise:
      return "no_noise";
    case Verdict::kNoTime:
      break;
  }
  return "no_time";
}

absl::StatusOr<Comparison> CompareJobs(const v1::GetJobResponse& a, const v1::GetJobResponse& b) {
  const v1::Job &job_a = a.job(), &job_b = b.job();
  if (job_a.spec().benchmark() != job_b.spec().benchmark() ||
      job_a.benchmark_version() != job_b.benchmark_version()) {
    return absl::InvalidArgumentError(
        absl::StrCat("their numbers do not compare: A is ", job_a.spec().benchmark(), " v",
                     job_a.benchmark_version(), ", B is ", job_b.spec().benchmark(), " v",
                     job_b.benchmark_version()));
  }
  Comparison out;
  const std::map<std::string, const v1::CaseResult*> in_a = ByIdentity(a), in_b = ByIdentity(b);
  for (const v1::CaseResult& result : a.cases()) {
    const auto other = in_b.find(result.case_id());
    if (other == in_b.end()) {
      out.only_a.push_back(&result);
      continue;
    }
    ComparedCase& one = out.both.emplace_back();
    one.case_id = result.case_id();
    one.a = &result;
    one.b = other->second;
    one.time_a = TimeOf(*one.a);
    one.time_b = TimeOf(*one.b);
    one.verdict = Judge(one.time_a, one.time_b);
    one.ratio = one.verdict == Verdict::kNoTime ? kNan : one.time_b->p50() / one.time_a->p50();
  }
  for (const v1::CaseResult& result : b.cases()) {
    if (in_a.count(result.case_id()) == 0) out.only_b.push_back(&result);
  }
  return out;
}

int CountSlower(const Comparison& comparison, double percent) {
  int slower = 0;
  for (const ComparedCase& one : comparison.both) {
    if (one.verdict == Verdict::kNoTime) {
      slower += one.time_a != nullptr ? 1 : 0;
    } else if (one.verdict == Verdict::kSlower || one.verdict == Verdict::kNoNoise) {
      slower += one.ratio > 1 + percent / 100 ? 1 : 0;
    }
  }
  return slower;
}

Table ComparisonTable(const v1::GetJobResponse& a, const Comparison& comparison) {
  const BenchmarkSpec* bench = SpecOf(a.job().spec().benchmark());
  CaseList cases;
  for (const ComparedCase& one : comparison.both) cases.push_back(one.a);
  const std::vector<std::string> shown = ShownParams(bench, cases);
  Table table;
  for (const std::string& name : shown) {
    table.columns.push_back({name, absl::AsciiStrToUpper(name), "", Align::kRight});
  }
  table.columns.push_back({"a_time_p50", "A TIME P50", "s", Align::kRight, Scale::kSi});
  table.columns.push_back({"b_time_p50", "B TIME P50", "s", Align::kRight, Scale::kSi});
  table.columns.push_back({"change", "CHANGE", "1", Align::kRight, Scale::kChange});
  table.columns.push_back({"verdict", "B IS"});
  table.columns.push_back({"case", "CASE", "", Align::kLeft, Scale::kPlain, true});
  for (const ComparedCase& one : comparison.both) {
    std::vector<Cell>& row = table.rows.emplace_back();
    for (const std::string& name : shown) row.emplace_back(ParamText(bench, *one.a, name));
    row.emplace_back(one.time_a == nullptr ? kNan : one.time_a->p50());
    row.emplace_back(one.time_b == nullptr ? kNan : one.time_b->p50());
    row.emplace_back(one.ratio - 1);
    switch (one.verdict) {
      case Verdict::kSame:
        row.emplace_back(std::string("within noise"), Style::kDim);
        break;
      case Verdict::kFaster:
        row.emplace_back(std::string("faster"), Style::kGood);
        break;
      case Verdict::kSlower:
        row.emplace_back(std::string("slower"), Style::kBad);
        break;
      case Verdict::kNoNoise:
        row.emplace_back(absl::StrCat(one.ratio > 1 ? "slower" : "faster", " (noise unknown)"));
        break;
      case Verdict::kNoTime:
        row.emplace_back(absl::StrCat("not comparable: A ", WireCaseStatusName(one.a->status()),
                                      ", B ", WireCaseStatusName(one.b->status())),
                         Style::kWarn);
        break;
    }
    row.emplace_back(one.case_id);
  }
  return table;
}

Json ComparedCaseJson(const ComparedCase& one) {
  Json apart = nullptr;
  if (one.verdict == Verdict::kSame) apart = false;
  if (one.verdict == Verdict::kSlower || one.verdict == Verdict::kFaster) apart = true;
  return {{"case", one.case_id},
          {"params", CaseJson(*one.a)["params"]},
          {"a", SideJson(*one.a, one.time_a)},
          {"b", SideJson(*one.b, one.time_b)},
          {"ratio", Number(one.ratio)},
          {"apart", apart},
          {"verdict", VerdictText(one.verdict)}};
}

Json ComparisonJson(const v1::GetJobResponse& a, const v1::GetJobResponse& b,
                    const Comparison& comparison) {
  Json cases = Json::array();
  for (const ComparedCase& one : comparison.both) cases.push_back(ComparedCaseJson(one));
  Json out = Json::object();
  out["a"] = JobJson(a.job());
  out["b"] = JobJson(b.job());
  out["cases"] = std::move(cases);
  out["only_a"] = IdsJson(comparison.only_a);
  out["only_b"] = IdsJson(comparison.only_b);
  return out;
}

std::string SideText(const v1::Job& job) {
  std::string text = job.job_id();
  if (!job.spec().name().empty()) absl::StrAppend(&text, " \"", job.spec().name(), "\"");
  absl::StrAppend(&text, " (", job.ranks(), job.ranks() == 1 ? " rank" : " ranks");
  const std::vector<std::string> nodes(job.nodes().begin(), job.nodes().end());
  if (!nodes.empty()) absl::StrAppend(&text, " on ", NamesText(nodes, kNodesShown));
  return absl::StrCat(text, ", backend ", job.backend(), ")");
}

}  // namespace param
