#pragma once
// The one suite that every Store passes, and what its tests are made of.

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/core/store.h"

namespace param {

// A folder that goes with the test.
class TempDir {
 public:
  TempDir() {
    std::string pattern = absl::StrCat(::testing::TempDir(), "/store-XXXXXX");
    path_ = std::filesystem::path(::mkdtemp(pattern.data())).lexically_normal().string();
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  std::string File(const std::string& name) const { return absl::StrCat(path_, "/", name); }

 private:
  std::string path_;
};

// Submits and waits for the answer.
inline absl::Status Commit(Store& store, std::vector<Write> batch) {
  std::mutex mu;
  std::condition_variable answered;
  bool is_done = false;
  absl::Status result;
  store.Submit(std::move(batch), [&](absl::Status status) {
    const std::lock_guard<std::mutex> lock(mu);
    result = std::move(status);
    is_done = true;
    answered.notify_all();
  });
  std::unique_lock<std::mutex> lock(mu);
  answered.wait(lock, [&] { return is_done; });
  return result;
}

inline Job MakeJob(const std::string& id, std::int64_t submitted = 1) {
  Job job;
  job.job_id = id;
  job.request_id = "r-" + id;
  job.owner = "local";
  job.spec.benchmark = "gemm";
  job.benchmark_version = 1;
  job.timeline.submitted = submitted;
  return job;
}

// A job with no field left at its default.
inline Job FullJob(const std::string& id) {
  Job job = MakeJob(id, 1'800'000'000'000'000'001);
  job.spec.params = {{"m", "64:256:x2"}, {"dtype", "f32,bf16"}, {"odd", "\"quoted\"\n\t\u00e4"}};
  job.spec.nodes = 3;
  job.spec.ranks_per_node = 2;
  job.spec.backend = "cpu+mpi";
  job.spec.node_names = {"n2", "n1"};
  job.spec.selector = {{"rack", "7"}, {"class", "a=b,c"}};
  job.spec.priority = -5;
  job.spec.timeout_ns = 9'007'199'254'740'993;  // more than a double can hold
  job.spec.retries = 2;
  job.spec.name = "nightly";
  job.spec.no_wait = true;
  job.spec.phase_deadlines_ns = {{"spawn", 5}, {"timed", 9'007'199'254'740'993}};
  job.spec.fake_script = "latency 1us\n";
  job.spec.source = "schedule";
  job.state = JobState::kFailed;
  job.reason = "worker died";
  job.nodes = {"n2", "n1", "n3"};
  job.ranks = 6;
  job.backend = "cpu";
  job.attempt = 1;
  job.failure = {"ABORTED", "timed", "n2", 3, "killed by SIGKILL", "1.2.3.4:5", 104};
  job.timeline = {1, 2, 3, 4, 5, 6, 7, 1'800'000'000'000'000'009};
  job.cases_total = 4;
  job.cases_done = 3;
  job.oversubscribed = true;
  return job;
}

inline CaseRecord MakeCase(int index) {
  CaseRecord record;
  record.index = index;
  record.planned.id = absl::StrCat("gemm:v1:m=", 64 << index);
  record.planned.params = {{"m", std::int64_t{64} << index},
                           {"alpha", 1.0},
                           {"trans_a", false},
                           {"check", true},
                           {"dtype", std::string("f32")}};
  record.planned.set_row = absl::StrCat("smoke/00", index);
  record.planned.application = "speech";
  return record;
}

inline Attempt MakeAttempt(const std::string& job_id, int number) {
  Attempt attempt;
  attempt.job_id = job_id;
  attempt.attempt = number;
  attempt.state = "OPEN";
  attempt.ranks = {{0, "n1", 0}, {1, "n2", 0}};
  attempt.started_ns = 10;
  return attempt;
}

inline Measurement MakeMeasurement(int rank, const std::string& metric, double p50,
                                   line::Labels labels = {}) {
  Measurement m;
  m.rank = rank;
  m.metric = metric;
  m.unit = "s";
  m.labels = std::move(labels);
  m.summary = {40, 0.5, p50, 2.5, 3.5, 4.5, 5.5, 2.0, 0.125, 0.75, 1.25, 1};
  return m;
}

// The result of case `index`, with `value` as its median.
inline PutCaseResult MakeResult(const std::string& job_id, int attempt, int index, double value) {
  PutCaseResult write;
  write.key = {job_id, attempt};
  write.result.index = index;
  write.result.ended = true;
  write.result.status = line::CaseStatus::kPassed;
  write.result.info = {{"library", "onednn"}};
  write.result.measurements = {MakeMeasurement(-1, "time", value)};
  write.result.ranks = {{0, "n1", line::CaseStatus::kPassed, ""},
                        {1, "n2", line::CaseStatus::kPassed, ""}};
  write.samples = {{index, 0, "time", {}, {value, value + 1}}};
  return write;
}

// A store of one kind and what it stands on.
struct StoreUnderTest {
  std::unique_ptr<TempDir> folder;
  std::unique_ptr<Store> store;
};

struct StoreKind {
  const char* name;
  std::function<StoreUnderTest()> make;
};
std::vector<StoreKind> StoreKinds();

class StoreContract : public ::testing::TestWithParam<StoreKind> {
 protected:
  StoreContract() : under_test_(GetParam().make()) {}

  Store& store() { return *under_test_.store; }
  absl::Status Put(std::vector<Write> batch) { return Commit(store(), std::move(batch)); }

  // A job whose attempt 1 is open, with `cases` planned cases.
  void PutRunningJob(const std::string& id, int cases) {
    Job job = MakeJob(id);
    job.attempt = 1;
    job.state = JobState::kRunning;
    std::vector<CaseRecord> plan;
    for (int i = 0; i < cases; ++i) plan.push_back(MakeCase(i));
    ASSERT_EQ(Put({PutJob{job}, PutCases{id, plan}, PutAttempt{MakeAttempt(id, 1)}}),
              absl::OkStatus());
  }

  std::vector<std::string> ListedIds(const JobFilter& filter) {
    const auto jobs = store().ListJobs(filter);
    std::vector<std::string> ids;
    if (!jobs.ok()) return {std::string(jobs.status().message())};
    for (const Job& job : *jobs) ids.push_back(job.job_id);
    return ids;
  }

  // "job/case" of each result.
  std::vector<std::string> ListedResults(const ResultFilter& filter) {
    const auto rows = store().ListResults(filter);
    std::vector<std::string> ids;
    if (!rows.ok()) return {std::string(rows.status().message())};
    for (const ResultRow& row : *rows) {
      ids.push_back(absl::StrCat(row.job.job_id, "/", row.result.index));
    }
    return ids;
  }

  std::vector<SampleBlob> Samples(const std::string& job_id) {
    std::vector<SampleBlob> blobs;
    const absl::Status status = store().ReadSamples(job_id, {}, [&blobs](const SampleBlob& blob) {
      blobs.push_back(blob);
      return absl::OkStatus();
    });
    EXPECT_EQ(status, absl::OkStatus());
    return blobs;
  }

 private:
  StoreUnderTest under_test_;
};

}  // namespace param
