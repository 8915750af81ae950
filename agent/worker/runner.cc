#include "agent/worker/runner.h"

#include <cstdlib>
#include <deque>
#include <exception>
#include <new>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/backend/device.h"
#include "agent/backend/load_backend.h"
#include "agent/bench/driver.h"
#include "agent/bench/peak_cache.h"
#include "agent/worker/affinity.h"
#include "agent/worker/comm_group.h"
#include "agent/worker/environment.h"
#include "agent/worker/events.h"
#include "agent/worker/host.h"
#include "agent/worker/socket_team.h"
#include "proto/base/file.h"
#include "proto/base/status.h"

namespace param {
namespace {

absl::StatusOr<std::string> ReadText(const std::string& path) {
  if (path.empty()) return std::string();
  return ReadFile(path);
}

absl::StatusOr<const BenchmarkDriver*> FindDriver(const line::Assignment& assignment) {
  PARAM_ASSIGN_OR_RETURN(const BenchmarkSpec* spec, FindBenchmark(assignment.benchmark));
  if (spec->version != assignment.benchmark_version) {
    return absl::FailedPreconditionError(
        absl::StrCat("this worker has version ", spec->version, " of benchmark ", spec->id,
                     ", the job wants ", assignment.benchmark_version));
  }
  for (const BenchmarkDriver* driver : AllDrivers()) {
    if (driver->id == spec->id) return driver;
  }
  return absl::InternalError(absl::StrCat("benchmark ", spec->id, " has no driver"));
}

line::CaseStatus StatusOf(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPassed:
      return line::CaseStatus::kPassed;
    case Outcome::kWrong:
      return line::CaseStatus::kWrong;
    case Outcome::kSkipped:
      return line::CaseStatus::kSkipped;
    case Outcome::kFailed:
      return line::CaseStatus::kFailed;
  }
  return line::CaseStatus::kFailed;
}

// One rank of an attempt, from its assignment to its end.
class Rank {
 public:
  Rank(Channel& channel, PhaseTracker& phases, line::Assignment assignment)
      : channel_(channel),
        phases_(phases),
        assignment_(std::move(assignment)),
        team_(channel, assignment_.rank, assignment_.ranks) {}

  // CANCELLED when the job was; other errors fail the rank.
  absl::Status Run() {
    PARAM_RETURN_IF_ERROR(OpenDevice());
    phases_.Enter(line::Phase::kRendezvous, -1);
    PARAM_RETURN_IF_ERROR(team_.Barrier());
    phases_.Enter(line::Phase::kCommInit, -1);
    PARAM_RETURN_IF_ERROR(OpenComms());
    SendFacts();
    for (const line::AssignedCase& one : assignment_.cases) {
      if (channel_.cancelled()) return absl::CancelledError(channel_.cancel_reason());
      PARAM_RETURN_IF_ERROR(RunCase(one));
    }
    return TearDown();
  }

 private:
  absl::Status OpenDevice() {
    PARAM_ASSIGN_OR_RETURN(driver_, FindDriver(assignment_));
    PARAM_RETURN_IF_ERROR(BindToCpus(assignment_.cpus));
    // Read by the runtime of parallel loops when a backend brings it in.
    setenv("OMP_NUM_THREADS", absl::StrCat(assignment_.threads).c_str(), 1);
    PARAM_ASSIGN_OR_RETURN(std::string script, ReadText(assignment_.fake_script));
    host_.emplace(channel_, team_, phases_, assignment_, std::move(script));
    PARAM_ASSIGN_OR_RETURN(backend_, LoadBackend(assignment_.device_backend_path));
    if (!backend_.device.has_value()) {
      return absl::FailedPreconditionError(
          absl::StrCat("backend ", backend_.name, " is no device backend"));
    }
    PARAM_ASSIGN_OR_RETURN(
        Device device, Device::Open(*backend_.device, host_->table(), assignment_.device_index),
        "opening device ", assignment_.device_index, " of backend ", backend_.name);
    device_.emplace(std::move(device));
    return absl::OkStatus();
  }

  absl::Status OpenComms() {
    for (const std::string& path : assignment_.comm_backend_paths) {
      PARAM_ASSIGN_OR_RETURN(LoadedBackend loaded, LoadBackend(path));
      comm_backends_.push_back(std::move(loaded));
      PARAM_ASSIGN_OR_RETURN(CommGroup group, CommGroup::Create(comm_backends_.back(),
                                                                host_->table(), *device_, team_));
      comms_.push_back(std::move(group));
    }
    return absl::OkStatus();
  }

  void SendFacts() {
    std::vector<const LoadedBackend*> backends = {&backend_};
    for (const LoadedBackend& comm : comm_backends_) backends.push_back(&comm);
    channel_.Send(line::Environment{CollectFacts(backends, assignment_.threads)});
  }

  absl::Status RunCase(const line::AssignedCase& one) {
    channel_.Send(line::CaseBegin{one.index});
    const MeasureOptions measure = MeasureOptionsOf(one.params);
    LineReporter reporter(channel_, phases_, clock_, one.index);
    std::optional<CommView> comm;
    if (!comms_.empty()) comm = comms_.front().view();
    CaseContext context = {team_,   device_->table(), device_->ctx(), one.params,
                           measure, reporter,         &peaks_,        comm ? &*comm : nullptr};
    PARAM_ASSIGN_OR_RETURN(const CaseResult result, driver_->run(context));
    phases_.End();
    channel_.Send(line::CaseEnd{one.index, StatusOf(result.outcome), result.reason, result.scalars,
                                result.info});
    return absl::OkStatus();
  }

  absl::Status TearDown() {
    phases_.Enter(line::Phase::kTeardown, -1);
    for (CommGroup& comm : comms_) PARAM_RETURN_IF_ERROR(comm.Close(), "closing communicator");
    comms_.clear();
    device_.reset();
    phases_.End();
    return absl::OkStatus();
  }

  Channel& channel_;
  PhaseTracker& phases_;
  const SystemClock clock_;
  const line::Assignment assignment_;
  SocketTeam team_;
  const BenchmarkDriver* driver_ = nullptr;
  LoadedBackend backend_;
  std::deque<LoadedBackend> comm_backends_;  // contexts point into them: they must not move
  std::optional<Host> host_;
  std::optional<Device> device_;
  PeakCache peaks_;
  std::vector<CommGroup> comms_;
};

// The fence: what foreign code or memory throws becomes a status.
absl::Status RunGuarded(Channel& channel, PhaseTracker& phases) {
  try {
    PARAM_ASSIGN_OR_RETURN(line::Assignment assignment, channel.WaitForAssignment());
    // Never destroyed: what a failed rank still holds is left to the end of the process, since
    // closing a broken device may hang. A sound rank has closed everything in its teardown.
    auto* const rank = new Rank(channel, phases, std::move(assignment));
    return rank->Run();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of host memory");
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("exception: ", e.what()));
  }
}

}  // namespace

int RunWorker(Channel& channel) {
  PhaseTracker phases(channel);
  const absl::Status ended = RunGuarded(channel, phases);
  channel.Finish();
  // Whatever the last error was: a cancelled job ends by itself.
  if (ended.ok() || channel.cancelled()) {
    channel.Send(line::Done{});
    return kWorkerDone;
  }
  if (absl::IsAborted(ended)) return kWorkerOrphan;
  channel.Send(line::Failure{std::string(CodeName(ended.code())), phases.phase(),
                             absl::StrCat(ended.message(), ""), "", 0, phases.case_index()});
  return kWorkerFailed;
}

}  // namespace param
