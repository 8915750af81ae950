#include "server/rpc/job_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <set>
#include <thread>

#include "tests/unit/server/rpc/rpc_fixture.h"

namespace param {
namespace {

using testing::HasSubstr;

TEST_F(RpcTest, RequestGivenTwiceGivesOneJob) {
  const auto first = Submit(Gemm(1), "again"), second = Submit(Gemm(1), "again");
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(first->job_id(), second->job_id());
  const auto list = Call(*jobs_, &v1::JobService::Stub::List, v1::ListJobsRequest());
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->jobs_size(), 1);
}

TEST_F(RpcTest, RequestGivenManyTimesAtOnceGivesOneJob) {
  std::vector<std::thread> users;
  Mutex mu;
  std::multiset<std::string> ids;
  for (int i = 0; i < 8; ++i) {
    users.emplace_back([&] {
      const auto job = Submit(Gemm(1), "at once");
      EXPECT_TRUE(job.ok()) << job.status();
      MutexLock lock(mu);
      if (job.ok()) ids.insert(job->job_id());
    });
  }
  for (std::thread& user : users) user.join();
  EXPECT_EQ(ids.size(), 8u);
  EXPECT_EQ(ids.count(*ids.begin()), 8u);
}

TEST_F(RpcTest, WhoChangesAJobIsLoggedOnceACall) {
  const auto job = Submit(Gemm(1), "r-submit");
  ASSERT_TRUE(job.ok()) << job.status();
  v1::CancelRequest cancel;
  cancel.mutable_principal()->set_name(std::string(1000, 'a') + "\n");
  cancel.set_request_id("r-cancel");
  cancel.set_job_id(job->job_id());
  ASSERT_TRUE(Call(*jobs_, &v1::JobService::Stub::Cancel, cancel).ok());
  ASSERT_FALSE(Submit(Gemm(0), "r-bad").ok());
  const std::string object = absl::StrCat("\" object=\"job ", job->job_id(), "\" code=\"OK\"");
  EXPECT_THAT(
      Logged("changing call"),
      testing::ElementsAre(
          absl::StrCat("changing call call=\"JobService.Submit\" principal=\"local\" "
                       "request_id=\"r-submit",
                       object),
          absl::StrCat("changing call call=\"JobService.Cancel\" principal=\"",
                       std::string(200, 'a'), "\" request_id=\"r-cancel", object),
          "changing call call=\"JobService.Submit\" principal=\"local\" request_id=\"r-bad\" "
          "object=\"a job of benchmark gemm\" code=\"INVALID_ARGUMENT\""));
}

TEST_F(RpcTest, RejectedSubmitSaysWhatWasWrong) {
  v1::JobSpec spec = Gemm(1);
  spec.set_benchmark("gem");
  absl::Status status = Submit(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("gemm"));
  status = Submit(Gemm(1, "-3")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("-3"));
  status = Submit(Gemm(0)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("nodes: 0 is outside 1.."));
  v1::SubmitRequest unnamed;
  *unnamed.mutable_spec() = Gemm(1);
  status = Call(*jobs_, &v1::JobService::Stub::Submit, unnamed).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("request_id"));
}

TEST_F(RpcTest, SubmitThatTheFleetCannotRunIsAFailedPrecondition) {
  const auto agent = Connected("n1");
  v1::JobSpec spec = Gemm(2);
  spec.set_no_wait(true);
  absl::Status status = Submit(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("needs 2 nodes; 1 "));
  spec = Gemm(1);
  spec.set_backend("nowhere");
  status = Submit(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("n1: backend nowhere is not installed"));
}

TEST_F(RpcTest, UnknownJobIsNotFoundByEveryCall) {
  const auto expect_not_found = [](const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(status.message()), HasSubstr("j-nowhere"));
  };
  expect_not_found(Get("j-nowhere").status());
  v1::CancelRequest cancel;
  cancel.set_job_id("j-nowhere");
  expect_not_found(Call(*jobs_, &v1::JobService::Stub::Cancel, cancel).status());
  v1::LogsRequest logs;
  logs.set_job_id("j-nowhere");
  logs.set_rank(-1);
  expect_not_found(Call(*jobs_, &v1::JobService::Stub::Logs, logs).status());
}

TEST_F(RpcTest, FinishedJobIsGivenWithCasesEnvironmentAndLogs) {
  const auto agent = Connected("n1");
  const std::string job_id = FinishedJob(*agent);
  const auto got = Get(job_id);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->job().state(), v1::SUCCEEDED);
  EXPECT_EQ(got->job().owner(), "local");
  EXPECT_EQ(got->job().backend(), "cpu");
  ASSERT_EQ(got->cases_size(), 1);
  EXPECT_EQ(got->cases(0).status(), v1::PASSED);
  int over_all_ranks = 0;
  for (const v1::Measurement& each : got->cases(0).measurements()) {
    if (each.metric() != "time" || each.rank() != -1) continue;
    ++over_all_ranks;
    EXPECT_EQ(each.unit(), "s");
    EXPECT_EQ(each.summary().n(), 3);
    EXPECT_DOUBLE_EQ(each.summary().min(), 0.5);
    EXPECT_DOUBLE_EQ(each.summary().p50(), 1.0);
    EXPECT_DOUBLE_EQ(each.summary().p75(), 1.25);
    EXPECT_DOUBLE_EQ(each.summary().max(), 1.5);
  }
  EXPECT_EQ(over_all_ranks, 1);
  ASSERT_EQ(got->environment_size(), 1);
  EXPECT_EQ(got->environment(0).node(), "n1");
  EXPECT_EQ(got->environment(0).facts().at("threads"), "2");

  v1::LogsRequest request;
  request.set_job_id(job_id);
  request.set_rank(-1);
  const auto logs = Call(*jobs_, &v1::JobService::Stub::Logs, request);
  ASSERT_TRUE(logs.ok()) << logs.status();
  ASSERT_EQ(logs->lines_size(), 1);
  EXPECT_EQ(logs->lines(0).text(), "it is warm");
  EXPECT_EQ(logs->lines(0).level(), "warn");
  EXPECT_EQ(logs->lines(0).node(), "n1");
  request.set_rank(1);
  EXPECT_EQ(Call(*jobs_, &v1::JobService::Stub::Logs, request)->lines_size(), 0);
}

TEST_F(RpcTest, ListTakesStatesBenchmarkAndLimit) {
  const auto agent = Connected("n1");
  const std::string finished = FinishedJob(*agent);
  const auto waiting = Submit(Gemm(7));
  ASSERT_TRUE(waiting.ok()) << waiting.status();
  v1::ListJobsRequest request;
  request.add_states(v1::SUCCEEDED);
  auto list = Call(*jobs_, &v1::JobService::Stub::List, request);
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->jobs_size(), 1);
  EXPECT_EQ(list->jobs(0).job_id(), finished);
  request.add_states(v1::QUEUED);
  EXPECT_EQ(Call(*jobs_, &v1::JobService::Stub::List, request)->jobs_size(), 2);
  request.set_limit(1);
  list = Call(*jobs_, &v1::JobService::Stub::List, request);
  ASSERT_EQ(list->jobs_size(), 1);
  EXPECT_EQ(list->jobs(0).job_id(), waiting->job_id());  // newest first
  request.set_benchmark("another");
  EXPECT_EQ(Call(*jobs_, &v1::JobService::Stub::List, request)->jobs_size(), 0);
  request.add_states(static_cast<v1::JobState>(99));
  EXPECT_EQ(Call(*jobs_, &v1::JobService::Stub::List, request).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(RpcTest, CancelEndsAWaitingJobAtOnce) {
  const auto job = Submit(Gemm(1));
  ASSERT_TRUE(job.ok()) << job.status();
  v1::CancelRequest request;
  request.set_job_id(job->job_id());
  const auto cancelled = Call(*jobs_, &v1::JobService::Stub::Cancel, request);
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  const auto events = WatchToEnd(job->job_id());
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().job().state(), v1::CANCELLED);
  // Once more: it is returned as it is.
  const auto again = Call(*jobs_, &v1::JobService::Stub::Cancel, request);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->job().state(), v1::CANCELLED);
}

TEST_F(RpcTest, CancelAsksTheAgentsOfARunningJobToStopGracefully) {
  const auto agent = Connected("n1");
  const auto job = Submit(Gemm(1));
  ASSERT_TRUE(job.ok()) << job.status();
  const v1::AttemptKey key = agent->AwaitStart().key();
  v1::CancelRequest request;
  request.set_job_id(job->job_id());
  ASSERT_TRUE(Call(*jobs_, &v1::JobService::Stub::Cancel, request).ok());
  const v1::StopAttempt stop = agent->Await(v1::ToAgent::kStop).stop();
  EXPECT_EQ(stop.key().job_id(), job->job_id());
  EXPECT_TRUE(stop.graceful());
  EXPECT_EQ(stop.reason(), "cancelled");
  agent->EndAttempt(key);
  const auto events = WatchToEnd(job->job_id());
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().job().state(), v1::CANCELLED);
}

TEST_F(RpcTest, CallsAreCountedByMethodAndCode) {
  EXPECT_FALSE(Get("j-nowhere").ok());
  EXPECT_TRUE(AwaitCall("JobService.Get NOT_FOUND"));
  EXPECT_TRUE(Submit(Gemm(1)).ok());
  EXPECT_TRUE(AwaitCall("JobService.Submit OK"));
}

TEST_F(RpcTest, ReadsThatFindNoRoomAreRefusedAtOnce) {
  std::promise<void> entered[kReaders], release;
  const std::shared_future<void> released = release.get_future().share();
  for (std::promise<void>& each : entered) {
    ASSERT_TRUE(readers_.Post([&each, released] {
      each.set_value();
      released.wait();
    }));
  }
  for (std::promise<void>& each : entered) each.get_future().wait();  // every thread is taken
  while (readers_.Post([] {})) {
  }
  EXPECT_EQ(Get("j-nowhere").status().code(), absl::StatusCode::kResourceExhausted);
  PlayedWatcher watcher(address(), "j-nowhere");
  watcher.ReadToEnd();
  EXPECT_EQ(watcher.Finish().code(), absl::StatusCode::kResourceExhausted);
  release.set_value();
}

}  // namespace
}  // namespace param
