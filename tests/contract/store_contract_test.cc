// Jobs, attempts, events, logs, nodes: what any Store answers.
#include <gmock/gmock.h>

#include <atomic>
#include <limits>
#include <thread>

#include "server/store/memory_store.h"
#include "server/store/sqlite_store.h"
#include "tests/contract/store_suite.h"

namespace param {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<StoreKind> StoreKinds() {
  return {{"Memory",
           [] {
             return StoreUnderTest{nullptr, std::make_unique<MemoryStore>()};
           }},
          {"Sqlite", [] {
             auto folder = std::make_unique<TempDir>();
             auto store = SqliteStore::Open(folder->File("param.db"));
             EXPECT_EQ(store.status(), absl::OkStatus());
             return StoreUnderTest{std::move(folder), store.ok() ? *std::move(store) : nullptr};
           }}};
}

INSTANTIATE_TEST_SUITE_P(All, StoreContract, ::testing::ValuesIn(StoreKinds()),
                         [](const auto& kind) { return kind.param.name; });

TEST_P(StoreContract, AJobComesBackWithEveryField) {
  const Job job = FullJob("j-1");
  ASSERT_EQ(Put({PutJob{job}}), absl::OkStatus());
  EXPECT_EQ(*store().GetJob("j-1"), job);
  EXPECT_EQ(*store().FindByRequest("r-j-1"), job);
}

TEST_P(StoreContract, PuttingAJobAgainReplacesItAndKeepsWhatHangsOnIt) {
  PutRunningJob("j-1", 2);
  Job job = *store().GetJob("j-1");
  job.state = JobState::kSucceeded;
  ASSERT_EQ(Put({PutJob{job}}), absl::OkStatus());
  EXPECT_EQ(store().GetJob("j-1")->state, JobState::kSucceeded);
  EXPECT_EQ(store().GetCases("j-1")->size(), 2U);
  EXPECT_EQ(store().GetAttempts("j-1")->size(), 1U);
}

TEST_P(StoreContract, AMissingJobIsNotFoundByName) {
  EXPECT_EQ(store().GetJob("j-9").status(), absl::NotFoundError("no job j-9"));
  EXPECT_EQ(store().FindByRequest("r-9").status(), absl::NotFoundError("no job of request r-9"));
  EXPECT_THAT(*store().GetCases("j-9"), IsEmpty());
  EXPECT_THAT(*store().GetAttempts("j-9"), IsEmpty());
  EXPECT_THAT(*store().GetLogs("j-9", -1, 10), IsEmpty());
  EXPECT_THAT(Samples("j-9"), IsEmpty());
}

TEST_P(StoreContract, ARequestMakesOneJobOnly) {
  ASSERT_EQ(Put({PutJob{MakeJob("j-1")}}), absl::OkStatus());
  Job second = MakeJob("j-2");
  second.request_id = "r-j-1";
  EXPECT_EQ(Put({PutJob{second}}), absl::AlreadyExistsError("request r-j-1 is that of job j-1"));
  EXPECT_EQ(store().GetJob("j-2").status().code(), absl::StatusCode::kNotFound);
}

TEST_P(StoreContract, ABadWriteLeavesNothingOfItsBatch) {
  PutRunningJob("j-1", 1);
  NodeRecord node;
  node.node = "n1";
  node.inventory_json = "{}";
  const absl::Status status =
      Put({PutJob{MakeJob("j-2")}, PutNode{node}, AppendRankEvents{{{{"j-1", 1}, 0, 1, 5, "x"}}},
           MakeResult("j-1", 1, 7, 1.0)});
  EXPECT_EQ(status, absl::NotFoundError("job j-1 has no case 7"));
  EXPECT_EQ(store().GetJob("j-2").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(*store().ListNodes(), IsEmpty());
  EXPECT_THAT(*store().GetRankEvents({"j-1", 1}), IsEmpty());
}

TEST_P(StoreContract, AFailedBatchDoesNotHarmTheNext) {
  EXPECT_EQ(Put({PutAttempt{MakeAttempt("j-1", 1)}}), absl::NotFoundError("no job j-1"));
  EXPECT_EQ(Put({PutJob{MakeJob("j-1")}, PutAttempt{MakeAttempt("j-1", 1)}}), absl::OkStatus());
}

TEST_P(StoreContract, WritesOfOneBatchSeeEachOther) {
  EXPECT_EQ(Put({PutJob{MakeJob("j-1")}, PutCases{"j-1", {MakeCase(0)}},
                 PutAttempt{MakeAttempt("j-1", 1)}, AppendRankEvents{{{{"j-1", 1}, 0, 1, 5, "x"}}},
                 MakeResult("j-1", 1, 0, 1.0), PurgeRankEvents{{"j-1", 1}}}),
            absl::OkStatus());
  EXPECT_THAT(*store().GetRankEvents({"j-1", 1}), IsEmpty());
}

TEST_P(StoreContract, JobsAreListedNewestFirst) {
  for (const auto& [id, time] : std::vector<std::pair<std::string, int>>{
           {"j-b", 5}, {"j-a", 5}, {"j-new", 9}, {"j-old", 1}}) {
    ASSERT_EQ(Put({PutJob{MakeJob(id, time)}}), absl::OkStatus());
  }
  EXPECT_THAT(ListedIds({}), ElementsAre("j-new", "j-b", "j-a", "j-old"));
  JobFilter two;
  two.limit = 2;
  EXPECT_THAT(ListedIds(two), ElementsAre("j-new", "j-b"));
  two.limit = 0;  // no limit
  EXPECT_EQ(ListedIds(two).size(), 4U);
}

TEST_P(StoreContract, JobsAreFilteredByStateAndBenchmark) {
  Job running = MakeJob("j-run", 1);
  running.state = JobState::kRunning;
  Job other = MakeJob("j-other", 2);
  other.spec.benchmark = "all_reduce";
  Job ended = MakeJob("j-end", 3);
  ended.state = JobState::kTimedOut;
  ASSERT_EQ(Put({PutJob{running}, PutJob{other}, PutJob{ended}}), absl::OkStatus());
  EXPECT_THAT(ListedIds({{JobState::kRunning, JobState::kTimedOut}, "", 50}),
              ElementsAre("j-end", "j-run"));
  EXPECT_THAT(ListedIds({{}, "gemm", 50}), ElementsAre("j-end", "j-run"));
  EXPECT_THAT(ListedIds({{JobState::kQueued}, "all_reduce", 50}), ElementsAre("j-other"));
  EXPECT_THAT(ListedIds({{JobState::kQueued}, "gemm", 50}), IsEmpty());
}

TEST_P(StoreContract, AttemptsComeBackInOrderAndAreReplaced) {
  Attempt first = MakeAttempt("j-1", 1);
  ASSERT_EQ(Put({PutJob{MakeJob("j-1")}, PutAttempt{MakeAttempt("j-1", 2)}, PutAttempt{first}}),
            absl::OkStatus());
  first.state = "LOST";
  first.finished_ns = 99;
  first.failure = {"UNAVAILABLE", "timed", "n1", -1, "agent lost", "", 0};
  ASSERT_EQ(Put({PutAttempt{first}}), absl::OkStatus());
  EXPECT_THAT(*store().GetAttempts("j-1"), ElementsAre(first, MakeAttempt("j-1", 2)));
}

TEST_P(StoreContract, RankEventsComeInTheOrderTheyCameAndRepeatsChangeNothing) {
  PutRunningJob("j-1", 1);
  const AttemptKey key = {"j-1", 1};
  const RankEvent a = {key, 1, 1, 50, std::string("bytes\0\xff", 7)};
  const RankEvent b = {key, 0, 10, 60, ""};
  const RankEvent c = {key, 0, 9, 70, "third"};
  ASSERT_EQ(Put({AppendRankEvents{{a, b}}}), absl::OkStatus());
  RankEvent changed = a;
  changed.line = "changed";
  ASSERT_EQ(Put({AppendRankEvents{{changed, c, c}}}), absl::OkStatus());
  EXPECT_THAT(*store().GetRankEvents(key), ElementsAre(a, b, c));  // as they came
}

TEST_P(StoreContract, RankEventsBelongToOneAttempt) {
  PutRunningJob("j-1", 1);
  ASSERT_EQ(Put({PutAttempt{MakeAttempt("j-1", 2)}}), absl::OkStatus());
  ASSERT_EQ(Put({AppendRankEvents{{{{"j-1", 1}, 0, 1, 5, "one"}, {{"j-1", 2}, 0, 1, 5, "two"}}}}),
            absl::OkStatus());
  ASSERT_EQ(Put({PurgeRankEvents{{"j-1", 1}}}), absl::OkStatus());
  EXPECT_THAT(*store().GetRankEvents({"j-1", 1}), IsEmpty());
  EXPECT_EQ(store().GetRankEvents({"j-1", 2})->size(), 1U);
  EXPECT_EQ(Put({AppendRankEvents{{{{"j-1", 3}, 0, 1, 5, "x"}}}}),
            absl::NotFoundError("job j-1 has no attempt 3"));
}

TEST_P(StoreContract, SequenceNumbersAboveTheSignedRangeAreRefused) {
  PutRunningJob("j-1", 1);
  const auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(Put({AppendRankEvents{{{{"j-1", 1}, 0, largest, 5, "x"}}}}), absl::OkStatus());
  EXPECT_EQ(Put({AppendRankEvents{{{{"j-1", 1}, 0, largest + 1, 5, "x"}}}}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(store().GetRankEvents({"j-1", 1})->front().seq, largest);
}

TEST_P(StoreContract, TheEnvironmentOfARankIsReplaced) {
  PutRunningJob("j-1", 1);
  const AttemptKey key = {"j-1", 1};
  const RankEnvironment one = {1, {{"cpus", "0-3"}, {"governor", "performance"}}};
  const RankEnvironment zero = {0, {{"cpus", "4"}}};
  ASSERT_EQ(Put({PutEnvironment{key, {1, {{"stale", "x"}}}}}), absl::OkStatus());
  ASSERT_EQ(Put({PutEnvironment{key, one}, PutEnvironment{key, zero}}), absl::OkStatus());
  EXPECT_THAT(*store().GetEnvironment(key), ElementsAre(zero, one));
  EXPECT_EQ(Put({PutEnvironment{{"j-1", 2}, zero}}),
            absl::NotFoundError("job j-1 has no attempt 2"));
}

TEST_P(StoreContract, LogsGiveTheLastLinesOldestFirst) {
  PutRunningJob("j-1", 1);
  const LogRow a = {1, 0, 1, 100, "info", "a"};
  const LogRow b = {1, 1, 1, 200, "warn", "b \xff"};
  const LogRow c = {1, 0, 2, 300, "error", "c"};
  ASSERT_EQ(Put({AppendLogs{"j-1", {c, a}}}), absl::OkStatus());
  LogRow changed = a;
  changed.text = "changed";
  ASSERT_EQ(Put({AppendLogs{"j-1", {b, changed}}}), absl::OkStatus());
  EXPECT_THAT(*store().GetLogs("j-1", -1, 10), ElementsAre(a, b, c));
  EXPECT_THAT(*store().GetLogs("j-1", -1, 2), ElementsAre(b, c));
  EXPECT_THAT(*store().GetLogs("j-1", 0, 1), ElementsAre(c));
  EXPECT_THAT(*store().GetLogs("j-1", 0, 0), ElementsAre(a, c));
  EXPECT_EQ(Put({AppendLogs{"j-2", {a}}}), absl::NotFoundError("no job j-2"));
}

TEST_P(StoreContract, NodesAreReplacedAndListedByName) {
  NodeRecord b = {"b", true, "bad fan", {{"rack", "1"}}, "{\"cores\": 2}", 5, 6};
  const NodeRecord a = {"a", false, "", {}, "{}", 1, 2};
  ASSERT_EQ(Put({PutNode{b}, PutNode{a}}), absl::OkStatus());
  b.drained = false;
  b.drain_reason = "";
  ASSERT_EQ(Put({PutNode{b}}), absl::OkStatus());
  EXPECT_THAT(*store().ListNodes(), ElementsAre(a, b));
}

TEST_P(StoreContract, AnEmptyBatchIsAcknowledged) { EXPECT_EQ(Put({}), absl::OkStatus()); }

TEST_P(StoreContract, DoneMayCallBackIntoTheStore) {
  std::mutex mu;
  std::condition_variable answered;
  std::vector<std::string> seen;
  store().Submit({PutJob{MakeJob("j-1")}}, [&](absl::Status first) {
    const auto job = store().GetJob("j-1");
    store().Submit({PutJob{MakeJob("j-2")}}, [&, first, job](absl::Status second) {
      const std::lock_guard<std::mutex> lock(mu);
      if (first.ok() && job.ok()) seen.push_back(job->job_id);
      if (second.ok()) seen.emplace_back("second");
      answered.notify_all();
    });
  });
  std::unique_lock<std::mutex> lock(mu);
  answered.wait(lock, [&] { return !seen.empty(); });
  EXPECT_THAT(seen, ElementsAre("j-1", "second"));
}

TEST_P(StoreContract, BatchesOfOneThreadApplyInOrderAmongManyThreads) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 50;
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const std::string id = absl::StrCat("j-", t);
      for (int i = 1; i <= kRounds; ++i) {
        Job job = MakeJob(id, i);
        job.cases_done = i;
        // Only the last one is waited for: the others must have been applied before it.
        if (i < kRounds) {
          store().Submit({PutJob{job}}, [&](const absl::Status& s) { failures += s.ok() ? 0 : 1; });
        } else {
          failures += Put({PutJob{job}}).ok() ? 0 : 1;
        }
        failures += store().ListJobs({}).ok() ? 0 : 1;
      }
      const auto job = store().GetJob(id);
      failures += job.ok() && job->cases_done == kRounds ? 0 : 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(ListedIds({}).size(), static_cast<std::size_t>(kThreads));
}

}  // namespace param
