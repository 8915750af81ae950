// Messages between pairs of ranks.

#include <map>
#include <optional>
#include <string>
#include <utility>

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
  bool idle() const override { return !OwnPair().has_value(); }

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

// One number of every ordered pair in turn; the others wait at the team's barrier.
class MatrixRun {
 public:
  MatrixRun(CaseContext& context, const P2pOrder& order, P2pCase& p2p, CaseResult& result)
      : context_(context), order_(order), case_(p2p), result_(result) {}

  absl::Status Run() {
    context_.reporter.WarmupBegins();
    context_.reporter.TimedBegins();
    for (const RankPair& pair : order_.pairs) {
      PARAM_RETURN_IF_ERROR(RunPair(pair), "pair ", pair.source, " to ", pair.destination);
    }
    if (!times_.empty()) context_.reporter.Samples("time", "s", {}, times_);
    result_.info["checked_elements"] = absl::StrCat(checked_);
    return absl::OkStatus();
  }

 private:
  absl::Status RunPair(const RankPair& pair) {
    // Also tells whether the job was cancelled: the same answer on all ranks.
    PARAM_ASSIGN_OR_RETURN(
        const std::string stop,
        context_.team.Agree(context_.reporter.Cancelled() ? "the job was cancelled" : ""));
    if (!stop.empty()) return absl::CancelledError(stop);
    const int rank = context_.team.rank();
    if (rank != pair.source && rank != pair.destination) return absl::OkStatus();
    PARAM_ASSIGN_OR_RETURN(std::vector<double> round_trips, Sample(P2pTest::kPingPong, pair));
    PARAM_ASSIGN_OR_RETURN(std::vector<double> windows, Sample(P2pTest::kUni, pair));
    if (rank != pair.source) return absl::OkStatus();
    for (double& seconds : round_trips) seconds /= 2;
    times_.insert(times_.end(), round_trips.begin(), round_trips.end());
    const double bytes = static_cast<double>(order_.size * order_.window);
    for (double& seconds : windows) seconds = bytes / seconds;
    const std::map<std::string, std::string> labels = {{"src", absl::StrCat(pair.source)},
                                                       {"dst", absl::StrCat(pair.destination)}};
    context_.reporter.Samples("latency", "s", labels, round_trips);
    context_.reporter.Samples("bandwidth", "B/s", labels, windows);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<double>> Sample(P2pTest test, const RankPair& pair) {
    PARAM_RETURN_IF_ERROR(case_.LinkTo(test, pair));
    if (context_.measure.check) {
      PARAM_ASSIGN_OR_RETURN(std::string problem, case_.link().Check(&checked_), "verifying");
      NoteProblem(std::move(problem), result_);
    }
    for (std::int64_t i = 0; i < context_.measure.warmup; ++i) {
      PARAM_RETURN_IF_ERROR(case_.link().Run());
    }
    const std::int64_t iterations =
        context_.measure.iters > 0 ? context_.measure.iters : kMatrixIterations;
    std::vector<double> samples;
    samples.reserve(static_cast<std::size_t>(iterations));
    for (std::int64_t i = 0; i < iterations; ++i) {
      PARAM_RETURN_IF_ERROR(case_.timer().Begin());
      PARAM_RETURN_IF_ERROR(case_.link().Run());
      PARAM_ASSIGN_OR_RETURN(const double seconds, case_.timer().End());
      samples.push_back(seconds);
    }
    return samples;
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
  result.info["checked_elements"] = absl::StrCat(checked);
  PARAM_RETURN_IF_ERROR(p2p.link().FillInputs(), "filling");
  const SystemClock clock;
  const bool windowed = order.test == P2pTest::kUni || order.test == P2pTest::kBi;
  PerMessage reporter(context.reporter, windowed ? static_cast<double>(order.window) : 1);
  PARAM_ASSIGN_OR_RETURN(const Measurement measured,
                         Measure(context.team, p2p.timer(), p2p, context.measure, clock, reporter));
  if (!p2p.idle()) measured.Describe(result);
  return absl::OkStatus();
}

absl::StatusOr<CaseResult> RunP2p(CaseContext& context) {
  context.reporter.VerifyBegins();
  if (context.comm == nullptr) {
    return absl::FailedPreconditionError("the job has no communication backend");
  }
  const absl::StatusOr<P2pOrder> order = P2pOrderOf(context);
  std::optional<P2pCase> p2p;
  absl::Status step = order.status();
  if (step.ok()) step = p2p.emplace(context, *order).CreateOps();
  PARAM_ASSIGN_OR_RETURN(Agreement possible, AgreeOnStep(context.team, step));
  if (possible.outcome != Outcome::kPassed) return EndedBy(std::move(possible));
  step = p2p->Allocate();
  PARAM_ASSIGN_OR_RETURN(Agreement ready, AgreeOnStep(context.team, step));
  if (ready.outcome != Outcome::kPassed) return EndedBy(std::move(ready));

  CaseResult result;
  if (order->matrix) {
    PARAM_RETURN_IF_ERROR(p2p->link().FillInputs(), "filling");
    PARAM_RETURN_IF_ERROR(MatrixRun(context, *order, *p2p, result).Run());
  } else {
    PARAM_RETURN_IF_ERROR(MeasurePairs(context, *order, *p2p, result));
  }
  PARAM_RETURN_IF_ERROR(context.comm->AsyncError(), "after the timed iterations");
  result.info["comm"] = context.comm->kind();
  AddJson(p2p->link().Info(), "", result.info);
  return result;
}

}  // namespace

const BenchmarkDriver& P2pDriver() {
  static constexpr BenchmarkDriver kDriver = {"p2p", RunP2p};
  return kDriver;
}

}  // namespace param
