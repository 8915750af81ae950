// Messages between pairs of ranks.

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agent/backend/op_desc.h"
#include "agent/bench/agreement.h"
#include "agent/bench/case_record.h"
#include "agent/bench/device_timer.h"
#include "agent/bench/driver.h"
#include "agent/bench/measure.h"
#include "agent/bench/p2p_case.h"
#include "proto/base/clock.h"
#include "proto/base/status.h"

namespace param {

const BenchmarkDriver& P2pDriver();

namespace {

constexpr std::int64_t kMatrixIterations = 100;  // of each pair, unless --iters says otherwise

// Everything a rank needs, over one link at a time.
class P2pCase final : public Operation {
 public:
  P2pCase(const CaseContext& context, const P2pOrder& order)
      : context_(context),
        order_(order),
        device_(Device::Borrow(context.device, context.device_ctx)),
        link_(context, order, device_, stream_) {}

  // UNIMPLEMENTED when this backend cannot do it.
  absl::Status CreateOps() {
    PARAM_RETURN_IF_ERROR(LinkTo(order_.test, OwnPair()));
    if (order_.matrix) PARAM_RETURN_IF_ERROR(LinkTo(P2pTest::kUni, OwnPair()));
    OpDesc barrier("barrier");
    PARAM_ASSIGN_OR_RETURN(barrier_, context_.comm->CreateOp(barrier.desc()), "barrier");
    return absl::OkStatus();
  }

  absl::Status Allocate() {
    PARAM_ASSIGN_OR_RETURN(stream_, device_.CreateStream());
    PARAM_RETURN_IF_ERROR(link_.Allocate(), "allocating");
    PARAM_ASSIGN_OR_RETURN(DeviceTimer made, DeviceTimer::Create(device_, stream_));
    timer_.emplace(std::move(made));
    return absl::OkStatus();
  }

  absl::Status LinkTo(P2pTest test, const std::optional<RankPair>& pair) {
    return link_.CreateOps(test, pair.value_or(RankPair{-1, -1}));
  }

  absl::Status Meet() override {
    if (!order_.barrier) return absl::OkStatus();
    return barrier_.Enqueue(stream_, {}, nullptr);
  }
  absl::Status Enqueue() override { return link_.Run(); }
  bool idle() const override {
    const std::optional<RankPair> pair = OwnPair();
    return !pair.has_value() || !Tells(order_.test, *pair, context_.team.rank());
  }

  std::optional<RankPair> OwnPair() const { return PairOf(order_.pairs, context_.team.rank()); }
  P2pLink& link() { return link_; }
  DeviceTimer& timer() { return *timer_; }

 private:
  const CaseContext& context_;
  const P2pOrder& order_;
  Device device_;
  Stream stream_;
  P2pLink link_;
  CommOp barrier_;
  std::optional<DeviceTimer> timer_;
};

// A windowed iteration is so many messages: samples are those of one.
class PerMessage final : public CaseReporter {
 public:
  PerMessage(CaseReporter& to, double messages) : to_(to), messages_(messages) {}
  void VerifyBegins() override { to_.VerifyBegins(); }
  void WarmupBegins() override { to_.WarmupBegins(); }
  void TimedBegins() override { to_.TimedBegins(); }
  void Samples(absl::string_view metric, absl::string_view unit,
               const std::map<std::string, std::string>& labels,
               absl::Span<const double> values) override {
    std::vector<double> each(values.begin(), values.end());
    for (double& value : each) value /= messages_;
    to_.Samples(metric, unit, labels, each);
  }
  bool Cancelled() const override { return to_.Cancelled(); }

 private:
  CaseReporter& to_;
  const double messages_;
};

void NoteProblem(std::string problem, CaseResult& result) {
  if (problem.empty() || result.outcome == Outcome::kWrong) return;
  result.outcome = Outcome::kWrong;
  result.reason = std::move(problem);
}

// Every ordered pair in turn; the others wait at the team's exchange. A pair takes as many
// iterations as fit into half of --max-time for each of its two tests, kMatrixIterations at most,
// unless --iters says how many.
class MatrixRun {
 public:
  MatrixRun(CaseContext& context, const P2pOrder& order, P2pCase& p2p, CaseResult& result)
      : context_(context), order_(order), case_(p2p), result_(result) {}

  absl::Status Run() {
    for (const RankPair& pair : order_.pairs) {
      PARAM_RETURN_IF_ERROR(RunPair(pair), "pair ", pair.source, " to ", pair.destination);
    }
    if (!times_.empty()) context_.reporter.Samples("time", "s", {}, times_);
    if (checked_ > 0) result_.info["checked_elements"] = absl::StrCat(checked_);
    return absl::OkStatus();
  }

 private:
  absl::Status RunPair(const RankPair& pair) {
    // Also tells whether the job was cancelled: the same answer on all ranks.
    PARAM_ASSIGN_OR_RETURN(
        const std::string stop,
        context_.team.Agree(context_.reporter.Cancelled() ? "the job was cancelled" : ""));
    if (!stop.empty()) return absl::CancelledError(stop);
    PARAM_ASSIGN_OR_RETURN(const std::vector<double> round_trips, Sample(P2pTest::kPingPong, pair));
    PARAM_ASSIGN_OR_RETURN(const std::vector<double> windows, Sample(P2pTest::kUni, pair));
    if (context_.team.rank() != pair.source) return absl::OkStatus();
    times_.insert(times_.end(), round_trips.begin(), round_trips.end());
    std::vector<double> latency, bandwidth;
    for (const double seconds : round_trips) latency.push_back(seconds / 2);
    const double bytes = static_cast<double>(order_.size * order_.window);
    for (const double seconds : windows) bandwidth.push_back(bytes / seconds);
    const std::map<std::string, std::string> labels = {{"src", absl::StrCat(pair.source)},
                                                       {"dst", absl::StrCat(pair.destination)}};
    context_.reporter.Samples("pair_latency", "s", labels, latency);
    context_.reporter.Samples("pair_bandwidth", "B/s", labels, bandwidth);
    return absl::OkStatus();
  }

  // Collective over the team, for the number of iterations; the rest is the pair's.
  absl::StatusOr<std::vector<double>> Sample(P2pTest test, const RankPair& pair) {
    const int rank = context_.team.rank();
    const bool takes_part = rank == pair.source || rank == pair.destination;
    double once_s = 0;
    if (takes_part) {
      PARAM_ASSIGN_OR_RETURN(once_s, Begin(test, pair));
    }
    PARAM_ASSIGN_OR_RETURN(const std::vector<std::string> of_all,
                           context_.team.Gather(absl::StrCat(Iterations(once_s))));
    std::vector<double> samples;
    if (!takes_part) return samples;
    std::int64_t iterations = 0;
    if (!absl::SimpleAtoi(of_all[static_cast<std::size_t>(pair.source)], &iterations)) {
      return absl::InternalError("the source did not say how many iterations there are");
    }
    context_.reporter.TimedBegins();
    samples.reserve(static_cast<std::size_t>(iterations));
    for (std::int64_t i = 0; i < iterations; ++i) {
      PARAM_ASSIGN_OR_RETURN(const double seconds, Once());
      samples.push_back(seconds);
    }
    return samples;
  }

  // Links up, checks, warms up; the time of the last iteration before the timed ones.
  absl::StatusOr<double> Begin(P2pTest test, const RankPair& pair) {
    PARAM_RETURN_IF_ERROR(case_.LinkTo(test, pair));
    if (context_.measure.check) {
      context_.reporter.VerifyBegins();
      PARAM_ASSIGN_OR_RETURN(std::string problem, case_.link().Check(&checked_), "verifying");
      NoteProblem(std::move(problem), result_);
    }
    context_.reporter.WarmupBegins();
    for (std::int64_t i = 0; i < context_.measure.warmup; ++i) {
      PARAM_RETURN_IF_ERROR(Once().status());
    }
    return Once();
  }

  absl::StatusOr<double> Once() {
    PARAM_RETURN_IF_ERROR(case_.timer().Begin());
    PARAM_RETURN_IF_ERROR(case_.link().Run());
    return case_.timer().End();
  }

  std::int64_t Iterations(double once_s) const {
    if (context_.measure.iters > 0) return context_.measure.iters;
    const double fit = context_.measure.max_time_s / 2 / std::max(once_s, 1e-9);
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::min(fit, 1e6)), 1,
                                    kMatrixIterations);
  }

  CaseContext& context_;
  const P2pOrder& order_;
  P2pCase& case_;
  CaseResult& result_;
  std::vector<double> times_;
  std::int64_t checked_ = 0;
};

absl::Status MeasurePairs(CaseContext& context, const P2pOrder& order, P2pCase& p2p,
                          CaseResult& result) {
  std::int64_t checked = 0;
  if (context.measure.check) {
    PARAM_ASSIGN_OR_RETURN(std::string problem, p2p.link().Check(&checked), "verifying");
    NoteProblem(std::move(problem), result);
  }
  if (checked > 0) result.info["checked_elements"] = absl::StrCat(checked);
  PARAM_RETURN_IF_ERROR(p2p.link().FillInputs(), "filling");
  const SystemClock clock;
  const bool windowed = order.test == P2pTest::kUni || order.test == P2pTest::kBi;
  PerMessage reporter(context.reporter, windowed ? static_cast<double>(order.window) : 1);
  PARAM_ASSIGN_OR_RETURN(const Measurement measured,
                         Measure(context.team, p2p.timer(), p2p, context.measure, clock, reporter));
  if (!p2p.idle()) measured.Describe(result);
  return absl::OkStatus();
}

// What is collective: from the check to the end of the measurement.
absl::StatusOr<CaseResult> RunTogether(CaseContext& context, const P2pOrder& order, P2pCase& p2p) {
  CaseResult result;
  if (order.matrix) {
    PARAM_RETURN_IF_ERROR(p2p.link().FillInputs(), "filling");
    PARAM_RETURN_IF_ERROR(MatrixRun(context, order, p2p, result).Run());
  } else {
    PARAM_RETURN_IF_ERROR(MeasurePairs(context, order, p2p, result));
  }
  PARAM_RETURN_IF_ERROR(context.comm->AsyncError(), "after the timed iterations");
  result.info["comm"] = context.comm->kind();
  AddJson(p2p.link().Info(), "", result.info);
  return result;
}

absl::StatusOr<CaseResult> RunP2p(CaseContext& context) {
  context.reporter.VerifyBegins();
  if (context.comm == nullptr) {
    return absl::FailedPreconditionError("the job has no communication backend");
  }
  const absl::StatusOr<P2pOrder> order = P2pOrderOf(context);
  std::unique_ptr<P2pCase> p2p;
  absl::Status step = order.status();
  if (step.ok()) {
    p2p = std::make_unique<P2pCase>(context, *order);
    step = p2p->CreateOps();
  }
  PARAM_ASSIGN_OR_RETURN(Agreement possible, AgreeOnStep(context.team, step));
  if (possible.outcome != Outcome::kPassed) return EndedBy(std::move(possible));
  step = p2p->Allocate();
  PARAM_ASSIGN_OR_RETURN(Agreement ready, AgreeOnStep(context.team, step));
  if (ready.outcome != Outcome::kPassed) return EndedBy(std::move(ready));
  absl::StatusOr<CaseResult> result = RunTogether(context, *order, *p2p);
  // The rank ends with this error. What a library may still be writing to, or waits for a peer that
  // is gone, is left to the end of the process.
  if (!result.ok()) static_cast<void>(p2p.release());
  return result;
}

}  // namespace

const BenchmarkDriver& P2pDriver() {
  static constexpr BenchmarkDriver kDriver = {"p2p", RunP2p};
  return kDriver;
}

}  // namespace param
