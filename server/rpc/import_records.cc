// An import request from the wire.

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "server/rpc/records.h"

namespace param {
namespace {

Summary SummaryFromProto(const v1::Summary& from) {
  Summary to;
  to.n = from.n();
  to.min = from.min();
  to.p50 = from.p50();
  to.p75 = from.p75();
  to.p95 = from.p95();
  to.p99 = from.p99();
  to.max = from.max();
  to.mean = from.mean();
  to.stdev = from.stdev();
  to.ci95_low = from.ci95_low();
  to.ci95_high = from.ci95_high();
  to.slowest_rank = -1;  // ranks are not imported
  return to;
}

absl::StatusOr<ImportedCase> CaseFromProto(const v1::ImportedCase& from) {
  ImportedCase to;
  to.params = {from.params().begin(), from.params().end()};
  if (from.status() == v1::PASSED) {
    to.status = line::CaseStatus::kPassed;
  } else if (from.status() == v1::WRONG) {
    to.status = line::CaseStatus::kWrong;
  } else {
    return absl::InvalidArgumentError("an imported case is PASSED or WRONG");
  }
  to.reason = from.reason();
  to.info = {from.info().begin(), from.info().end()};
  for (const v1::Measurement& m : from.measurements()) {
    Measurement& out = to.measurements.emplace_back();
    out.rank = m.rank();
    out.metric = m.metric();
    out.unit = m.unit();
    out.labels = {m.labels().begin(), m.labels().end()};
    out.summary = SummaryFromProto(m.summary());
  }
  return to;
}

}  // namespace

absl::StatusOr<ImportRequest> ImportFromProto(const v1::ImportRequest& request) {
  ImportRequest out;
  out.benchmark = request.benchmark();
  out.name = request.name();
  out.format = request.format();
  out.backend = request.backend();
  out.ranks = request.ranks();
  out.nodes.assign(request.nodes().begin(), request.nodes().end());
  out.environment = {request.environment().begin(), request.environment().end()};
  for (const v1::ImportedCase& one : request.cases()) {
    PARAM_ASSIGN_OR_RETURN(ImportedCase imported, CaseFromProto(one), "case ", out.cases.size());
    out.cases.push_back(std::move(imported));
  }
  return out;
}

}  // namespace param
