// Collective operations: all ranks together, over the measured communicator.

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/bench/agreement.h"
#include "agent/bench/case_record.h"
#include "agent/bench/collective_case.h"
#include "agent/bench/device_timer.h"
#include "agent/bench/driver.h"
#include "agent/bench/measure.h"
#include "proto/base/clock.h"
#include "proto/base/status.h"

namespace param {

const BenchmarkDriver& CollectiveDriver();

namespace {

// Memory and timer: what may still fail the case alone.
absl::Status MakeReady(CollectiveCase& collective, std::optional<DeviceTimer>& timer) {
  PARAM_RETURN_IF_ERROR(collective.Allocate(), "allocating");
  PARAM_ASSIGN_OR_RETURN(DeviceTimer made,
                         DeviceTimer::Create(collective.device(), collective.stream()));
  timer.emplace(std::move(made));
  return absl::OkStatus();
}

absl::Status Verify(CollectiveCase& collective, CaseResult& result) {
  std::int64_t checked = 0;
  PARAM_ASSIGN_OR_RETURN(const std::string problem, collective.Check(&checked), "verifying");
  if (checked > 0) result.info["checked_elements"] = absl::StrCat(checked);
  if (problem.empty()) return absl::OkStatus();
  result.outcome = Outcome::kWrong;
  result.reason = problem;
  return absl::OkStatus();
}

void Describe(const CaseContext& context, const CollectiveOrder& order,
              const CollectiveCase& collective, CaseResult& result) {
  if (order.request.op != CollectiveOp::kBarrier) {
    result.scalars["bytes_total"] = static_cast<double>(collective.layout().bytes);
    result.scalars["bytes_per_rank"] = static_cast<double>(collective.layout().bytes_per_rank);
    result.scalars["bus_factor"] = collective.layout().bus_factor;
  }
  result.info["comm"] = context.comm->kind();
  AddJson(collective.Info(), "", result.info);
}

void LeaveToProcess(std::unique_ptr<CollectiveCase> collective, std::optional<DeviceTimer>& timer) {
  if (timer.has_value()) static_cast<void>(new DeviceTimer(*std::move(timer)));
  static_cast<void>(collective.release());
}

// What is collective: from the check to the end of the measurement.
absl::StatusOr<CaseResult> RunTogether(CaseContext& context, const CollectiveOrder& order,
                                       CollectiveCase& collective, DeviceTimer& timer) {
  CaseResult result;
  if (context.measure.check) PARAM_RETURN_IF_ERROR(Verify(collective, result));
  PARAM_RETURN_IF_ERROR(collective.FillInputs(), "filling");
  const SystemClock clock;
  DrainingTimer draining(timer, collective, order.inflight > 1);
  PARAM_ASSIGN_OR_RETURN(
      const Measurement measured,
      Measure(context.team, draining, collective, context.measure, clock, context.reporter));
  PARAM_RETURN_IF_ERROR(context.comm->AsyncError(), "after the timed iterations");
  Describe(context, order, collective, result);
  if (!collective.idle()) measured.Describe(result);
  return result;
}

absl::StatusOr<CaseResult> RunCollective(CaseContext& context) {
  context.reporter.VerifyBegins();
  if (context.comm == nullptr) {
    return absl::FailedPreconditionError("the job has no communication backend");
  }
  const absl::StatusOr<CollectiveOrder> order = OrderOf(context);
  std::unique_ptr<CollectiveCase> collective;
  absl::Status step = order.status();
  if (step.ok()) {
    collective = std::make_unique<CollectiveCase>(context, *order);
    step = collective->CreateOps();
  }
  PARAM_ASSIGN_OR_RETURN(Agreement possible, AgreeOnStep(context.team, step));
  if (possible.outcome != Outcome::kPassed) return EndedBy(std::move(possible));

  std::optional<DeviceTimer> timer;
  step = MakeReady(*collective, timer);
  PARAM_ASSIGN_OR_RETURN(Agreement ready, AgreeOnStep(context.team, step));
  if (ready.outcome != Outcome::kPassed) return EndedBy(std::move(ready));

  absl::StatusOr<CaseResult> result = RunTogether(context, *order, *collective, *timer);
  // The rank ends with this error. What a library may still be writing to, or waits for a peer that
  // is gone, is left to the end of the process.
  if (!result.ok()) LeaveToProcess(std::move(collective), timer);
  return result;
}

}  // namespace

const BenchmarkDriver& CollectiveDriver() {
  static constexpr BenchmarkDriver kDriver = {"collective", RunCollective};
  return kDriver;
}

}  // namespace param
