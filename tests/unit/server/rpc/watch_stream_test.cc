#include "server/rpc/watch_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/server/rpc/rpc_fixture.h"

namespace param {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kManyCases = 800;
constexpr int kBatch = 100;  // fewer than kWatchQueue: a reader that reads keeps up
static_assert(kBatch * 2 < static_cast<int>(kWatchQueue));

class WatchStreamTest : public RpcTest {
 protected:
  // Runs all cases of a job of kManyCases, no faster than `pace` reads, and ends the job. Time
  // passes: patience with a reader that has stopped ends.
  void RunManyCases(PlayedAgent& agent, PlayedWatcher& pace) {
    const v1::StartAttempt start = agent.AwaitStart();
    ASSERT_EQ(start.cases_size(), kManyCases);
    agent.Say(start.key(), 0, Bringup());
    for (int first = 0; first < kManyCases; first += kBatch) {
      std::vector<line::FromWorker> lines;
      for (int i = first; i < first + kBatch; ++i) {
        for (line::FromWorker& each : PassedCase(i)) lines.push_back(std::move(each));
      }
      agent.Say(start.key(), 0, lines);
      ASSERT_TRUE(pace.AwaitCases(kBatch));
      clock_.Advance(kWatchPatience);
    }
    agent.Say(start.key(), 0, {line::Done{}});
    ASSERT_TRUE(agent.AwaitAck(start.key(), 0));
    agent.EndAttempt(start.key());
  }
  static v1::JobSpec ManyCases() { return Gemm(1, absl::StrCat("1:", kManyCases, ":+1")); }

  static std::vector<std::uint64_t> CaseSeqs(const std::vector<v1::JobEvent>& events) {
    std::vector<std::uint64_t> seqs;
    for (const v1::JobEvent& event : events) {
      if (event.has_case_done()) seqs.push_back(event.seq());
    }
    return seqs;
  }
};

TEST_F(WatchStreamTest, WatcherThatDoesNotReadIsDroppedAndResumesWhileTheJobEnds) {
  const auto agent = Connected("n1");
  const auto job = Submit(ManyCases());
  ASSERT_TRUE(job.ok()) << job.status();
  PlayedWatcher slow(address(), job->job_id()), healthy(address(), job->job_id());
  v1::JobEvent first;
  ASSERT_TRUE(slow.Next(&first));  // it is watching; from here on it does not read
  ASSERT_NO_FATAL_FAILURE(RunManyCases(*agent, healthy));

  const auto rest = healthy.ReadToEnd();
  EXPECT_TRUE(healthy.Finish().ok());
  ASSERT_FALSE(rest.empty());
  EXPECT_EQ(rest.back().job().state(), v1::SUCCEEDED);
  EXPECT_EQ(rest.back().job().cases_done(), kManyCases);

  const auto seen = CaseSeqs(slow.ReadToEnd());
  const absl::Status status = slow.Finish();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("after_seq"));
  ASSERT_FALSE(seen.empty());
  ASSERT_LT(seen.size(), static_cast<std::size_t>(kManyCases));

  const auto resumed = CaseSeqs(WatchToEnd(job->job_id(), seen.back()));
  ASSERT_EQ(seen.size() + resumed.size(), static_cast<std::size_t>(kManyCases));
  EXPECT_EQ(resumed.front(), seen.back() + 1);
  EXPECT_EQ(resumed.back(), seen.front() + kManyCases - 1);
}

TEST_F(WatchStreamTest, AQuickWatcherSeesAllOfManyCasesThatEndAtOnce) {
  constexpr int kAtOnce = 2000;
  static_assert(kAtOnce > static_cast<int>(kWatchQueue));
  const auto agent = Connected("n1");
  const auto job = Submit(Gemm(1, absl::StrCat("1:", kAtOnce, ":+1")));
  ASSERT_TRUE(job.ok()) << job.status();
  const v1::StartAttempt start = agent->AwaitStart();
  PlayedWatcher quick(address(), job->job_id());
  v1::JobEvent first;
  ASSERT_TRUE(quick.Next(&first));
  std::vector<line::FromWorker> lines = Bringup();
  for (int i = 0; i < kAtOnce; ++i) {
    for (line::FromWorker& each : PassedCase(i)) lines.push_back(std::move(each));
  }
  lines.push_back(line::Done{});
  agent->Say(start.key(), 0, lines);  // one message, one batch
  agent->EndAttempt(start.key());
  const auto events = quick.ReadToEnd();
  const absl::Status status = quick.Finish();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(CaseSeqs(events).size(), static_cast<std::size_t>(kAtOnce));
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().job().state(), v1::SUCCEEDED);
}

TEST_F(WatchStreamTest, ShutdownReturnsThoughAWatcherDoesNotRead) {
  const auto agent = Connected("n1");
  const auto job = Submit(ManyCases());
  ASSERT_TRUE(job.ok()) << job.status();
  PlayedWatcher slow(address(), job->job_id()), healthy(address(), job->job_id());
  v1::JobEvent first;
  ASSERT_TRUE(slow.Next(&first));
  ASSERT_NO_FATAL_FAILURE(RunManyCases(*agent, healthy));
  server_->Shutdown(absl::ZeroDuration());
  slow.ReadToEnd();
  EXPECT_FALSE(slow.Finish().ok());
}

TEST_F(WatchStreamTest, WatcherThatCancelsIsForgottenAndTheJobGoesOn) {
  const auto agent = Connected("n1");
  const auto job = Submit(Gemm(1, "1:2:+1"));
  ASSERT_TRUE(job.ok()) << job.status();
  const v1::AttemptKey key = agent->AwaitStart().key();
  PlayedWatcher leaving(address(), job->job_id());
  agent->Say(key, 0, Bringup());
  agent->Say(key, 0, PassedCase(0));
  ASSERT_TRUE(leaving.AwaitCases(1));
  leaving.Cancel();
  leaving.ReadToEnd();
  EXPECT_EQ(leaving.Finish().code(), absl::StatusCode::kCancelled);
  ASSERT_TRUE(AwaitCall("JobService.Watch CANCELLED"));  // the server's side of it is gone, too
  agent->Say(key, 0, PassedCase(1));
  agent->Say(key, 0, {line::Done{}});
  ASSERT_TRUE(agent->AwaitAck(key, 0));
  agent->EndAttempt(key);
  const auto events = WatchToEnd(job->job_id());
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().job().state(), v1::SUCCEEDED);
}

TEST_F(WatchStreamTest, LateWatcherOfAnOpenJobIsToldWhatItMissed) {
  const auto agent = Connected("n1");
  const auto job = Submit(Gemm(1, "1:3:+1"));
  ASSERT_TRUE(job.ok()) << job.status();
  const v1::AttemptKey key = agent->AwaitStart().key();
  PlayedWatcher early(address(), job->job_id());
  agent->Say(key, 0, Bringup());
  agent->Say(key, 0, PassedCase(0));
  agent->Say(key, 0, PassedCase(1));
  ASSERT_TRUE(early.AwaitCases(2));
  PlayedWatcher late(address(), job->job_id());
  v1::JobEvent event;
  ASSERT_TRUE(late.Next(&event));
  EXPECT_EQ(event.job().state(), v1::RUNNING);
  ASSERT_TRUE(late.Next(&event));
  EXPECT_EQ(event.case_done().case_index(), 0);
  const std::uint64_t first_seq = event.seq();
  ASSERT_TRUE(late.Next(&event));
  EXPECT_EQ(event.case_done().case_index(), 1);
  PlayedWatcher resumed(address(), job->job_id(), first_seq);
  ASSERT_TRUE(resumed.Next(&event));
  EXPECT_TRUE(event.has_job());
  ASSERT_TRUE(resumed.Next(&event));
  EXPECT_EQ(event.case_done().case_index(), 1);
}

TEST_F(WatchStreamTest, EndedJobIsReplayedFromTheStoreAfterTheGivenEvent) {
  const auto agent = Connected("n1");
  const auto job = Submit(Gemm(1, "1:3:+1"));
  ASSERT_TRUE(job.ok()) << job.status();
  const v1::AttemptKey key = agent->AwaitStart().key();
  PlayedWatcher live(address(), job->job_id());
  agent->Say(key, 0, Bringup());
  for (int i = 0; i < 3; ++i) agent->Say(key, 0, PassedCase(i));
  agent->Say(key, 0, {line::Done{}});
  ASSERT_TRUE(agent->AwaitAck(key, 0));
  agent->EndAttempt(key);
  const auto seqs = CaseSeqs(live.ReadToEnd());
  ASSERT_EQ(seqs.size(), 3u);

  const auto all = WatchToEnd(job->job_id());
  EXPECT_EQ(CaseSeqs(all), seqs);  // the same numbers as live
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all.back().job().state(), v1::SUCCEEDED);
  EXPECT_THAT(CaseSeqs(WatchToEnd(job->job_id(), seqs[0])), ElementsAre(seqs[1], seqs[2]));
  const auto nothing_new = WatchToEnd(job->job_id(), seqs[2]);
  ASSERT_EQ(nothing_new.size(), 1u);
  EXPECT_EQ(nothing_new[0].job().state(), v1::SUCCEEDED);
}

TEST_F(WatchStreamTest, UnknownJobIsNotFound) {
  PlayedWatcher watcher(address(), "j-nowhere");
  EXPECT_TRUE(watcher.ReadToEnd().empty());
  const absl::Status status = watcher.Finish();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("j-nowhere"));
}

}  // namespace
}  // namespace param
