// What only the SQLite store promises: files, locks, versions, faults of the disk.
#include "server/store/sqlite_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/catalog/derived.h"
#include "server/store/migrate.h"
#include "tests/contract/store_suite.h"

namespace param {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<SqliteStore> MustOpen(const std::string& path, SqliteStoreOptions options = {}) {
  auto store = SqliteStore::Open(path, std::move(options));
  EXPECT_EQ(store.status(), absl::OkStatus());
  return store.ok() ? *std::move(store) : nullptr;
}

// A second connection to look at what is on disk.
std::string Look(const std::string& path, const std::string& sql) {
  const auto db = Connection::Open(path);
  const auto text = db.ok() ? (*db)->ExecForText(sql) : db.status();
  return text.ok() ? *text : std::string(text.status().message());
}

TEST(SqliteStoreTest, ReopeningShowsEverything) {
  const TempDir folder;
  const std::string path = folder.File("param.db");
  Job job = FullJob("j-1");
  {
    const auto store = MustOpen(path);
    ASSERT_EQ(Commit(*store, {PutJob{job}, PutCases{"j-1", {MakeCase(0)}},
                              PutAttempt{MakeAttempt("j-1", 1)}, MakeResult("j-1", 1, 0, 1.5)}),
              absl::OkStatus());
  }
  const auto store = MustOpen(path);
  EXPECT_EQ(*store->GetJob("j-1"), job);
  EXPECT_EQ(store->GetCases("j-1")->front().measurements.front().summary.p50, 1.5);
  EXPECT_EQ(store->GetAttempts("j-1")->size(), 1U);
}

TEST(SqliteStoreTest, TheDestructorWritesWhatIsQueued) {
  const TempDir folder;
  std::atomic<int> acknowledged = 0;
  {
    const auto store = MustOpen(folder.File("param.db"));
    for (int i = 0; i < 100; ++i) {
      store->Submit({PutJob{MakeJob(absl::StrCat("j-", i))}},
                    [&](const absl::Status& status) { acknowledged += status.ok() ? 1 : 0; });
    }
  }
  EXPECT_EQ(acknowledged, 100);
  JobFilter all;
  all.limit = 0;
  EXPECT_EQ(MustOpen(folder.File("param.db"))->ListJobs(all)->size(), 100U);
}

TEST(SqliteStoreTest, WhatWasAcknowledgedSurvivesSigkill) {
  const TempDir folder;
  const std::string path = folder.File("param.db");
  int ends[2] = {};
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {  // writes jobs for ever; says each number once it was acknowledged
    auto store = SqliteStore::Open(path);
    if (!store.ok()) ::_exit(1);
    for (int i = 0;; ++i) {
      if (!Commit(**store, {PutJob{MakeJob(absl::StrCat("j-", i))}}).ok()) ::_exit(2);
      if (::write(ends[1], &i, sizeof(i)) != static_cast<ssize_t>(sizeof(i))) ::_exit(3);
    }
  }
  ::close(ends[1]);
  int last = -1;
  while (last < 30 && ::read(ends[0], &last, sizeof(last)) == static_cast<ssize_t>(sizeof(last))) {
  }
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  int number = 0;
  while (::read(ends[0], &number, sizeof(number)) == static_cast<ssize_t>(sizeof(number))) {
    last = number;  // acknowledged before it died
  }
  ::close(ends[0]);
  int wait_status = 0;
  ASSERT_EQ(::waitpid(child, &wait_status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(wait_status)) << WEXITSTATUS(wait_status);
  ASSERT_GE(last, 30);
  const auto store = MustOpen(path);  // the lock died with its owner
  for (int i = 0; i <= last; ++i) {
    EXPECT_EQ(store->GetJob(absl::StrCat("j-", i)).status(), absl::OkStatus());
  }
}

TEST(SqliteStoreTest, ASecondCoordinatorIsRefusedAndToldWhoHasTheFile) {
  const TempDir folder;
  const std::string path = folder.File("param.db");
  const auto first = MustOpen(path);
  const auto second = SqliteStore::Open(path);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr(absl::StrCat(path, ": another coordinator has this database open (process ",
                                     ::getpid())));
}

TEST(SqliteStoreTest, ANewerSchemaIsRefusedAndLeftAlone) {
  const TempDir folder;
  const std::string path = folder.File("param.db");
  MustOpen(path).reset();
  Look(path, "PRAGMA user_version=999");
  const auto store = SqliteStore::Open(path);
  EXPECT_EQ(store.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(store.status().message()), HasSubstr("its schema is version 999"));
  EXPECT_EQ(Look(path, "PRAGMA user_version"), "999");
}

TEST(SqliteStoreTest, AFailingMigrationLeavesTheFileAsItWas) {
  const TempDir folder;
  const auto db = Connection::Open(folder.File("param.db"));
  ASSERT_EQ(db.status(), absl::OkStatus());
  const EmbeddedFile files[] = {{"a", "0001_a.sql", "CREATE TABLE one (x INTEGER) STRICT;"},
                                {"b", "0002_b.sql", "CREATE TABLE two (x INTEGER); BROKEN;"}};
  const absl::Status status = Migrate(**db, files);
  EXPECT_THAT(std::string(status.message()), HasSubstr("migration 0002_b.sql"));
  EXPECT_EQ(*(*db)->ExecForText("SELECT count(*) FROM sqlite_schema"), "0");
  EXPECT_EQ(Migrate(**db, absl::MakeSpan(files).subspan(0, 1)), absl::OkStatus());
  EXPECT_EQ(*(*db)->ExecForText("PRAGMA user_version"), "1");
}

TEST(SqliteStoreTest, AFileThatIsNoDatabaseIsDataLossWithItsName) {
  const TempDir folder;
  const std::string path = folder.File("param.db");
  std::ofstream(path) << std::string(8192, 'x');
  const auto store = SqliteStore::Open(path);
  EXPECT_EQ(store.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(store.status().message()), HasSubstr(path));
}

TEST(SqliteStoreTest, AFolderThatIsNotThereIsNamed) {
  const auto store = SqliteStore::Open("/nowhere/param.db");
  EXPECT_EQ(store.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(store.status().message()), HasSubstr("/nowhere/param.db.lock"));
}

TEST(SqliteStoreTest, AFullDiskFailsTheBatchThatDoesNotFitAndNoOther) {
  const TempDir folder;
  const std::string path = folder.File("param.db");
  MustOpen(path).reset();
  SqliteStoreOptions options;
  options.max_pages = 80;
  std::atomic<int> full = 0;
  options.on_fault = [&full](absl::string_view kind) { full += kind == "full" ? 1 : 0; };
  const auto store = MustOpen(path, options);
  ASSERT_EQ(Commit(*store, {PutJob{MakeJob("j-1")}, PutAttempt{MakeAttempt("j-1", 1)}}),
            absl::OkStatus());
  const AppendRankEvents large = {{{{"j-1", 1}, 0, 1, 1, std::string(std::size_t{1} << 20, 'x')}}};
  const absl::Status status = Commit(*store, {PutJob{MakeJob("j-2")}, large});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  EXPECT_GE(full, 1);
  EXPECT_EQ(store->GetJob("j-2").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Commit(*store, {PutJob{MakeJob("j-3")}}), absl::OkStatus());  // it goes on
}

TEST(SqliteStoreTest, AFailingBatchOfAGroupTakesNoOtherWithIt) {
  const TempDir folder;
  const std::string path = folder.File("param.db");
  MustOpen(path).reset();
  SqliteStoreOptions options;
  options.max_pages = 80;
  std::atomic<int> good = 0;
  std::atomic<int> bad = 0;
  {
    const auto store = MustOpen(path, options);
    ASSERT_EQ(Commit(*store, {PutJob{MakeJob("j-0")}, PutAttempt{MakeAttempt("j-0", 1)}}),
              absl::OkStatus());
    for (int i = 1; i <= 20; ++i) {
      std::vector<Write> batch = {PutJob{MakeJob(absl::StrCat("j-", i))}};
      if (i % 4 == 0) {
        batch.emplace_back(
            AppendRankEvents{{{{"j-0", 1}, 0, 1, 1, std::string(std::size_t{1} << 20, 'x')}}});
      }
      store->Submit(std::move(batch),
                    [&](const absl::Status& status) { (status.ok() ? good : bad) += 1; });
    }
  }
  EXPECT_EQ(good, 15);
  EXPECT_EQ(bad, 5);
}

TEST(SqliteStoreTest, TheQueueIsBoundedAndSaysSo) {
  const TempDir folder;
  std::mutex hold;  // these outlive the store, whose last answers use them
  std::atomic<int> refused = 0;
  SqliteStoreOptions options;
  options.max_queued_bytes = 4096;
  const auto store = MustOpen(folder.File("param.db"), options);
  hold.lock();  // the writer waits in the first answer
  store->Submit({PutJob{MakeJob("j-0")}},
                [&hold](const absl::Status&) { const std::lock_guard<std::mutex> wait(hold); });
  for (int i = 1; i <= 10; ++i) {
    store->Submit({PutJob{MakeJob(absl::StrCat("j-", i))}}, [&refused](const absl::Status& status) {
      refused += absl::IsResourceExhausted(status) ? 1 : 0;
    });
  }
  EXPECT_GE(refused, 7);  // told at once, by the caller's thread
  hold.unlock();
}

TEST(SqliteStoreTest, TheViewOfEveryBenchmarkGivesParametersAndMedians) {
  const TempDir folder;
  const std::string path = folder.File("param.db");
  const auto store = MustOpen(path);
  for (const BenchmarkSpec* bench : AllBenchmarks()) {
    Job job = MakeJob(absl::StrCat("j-", bench->id));
    job.spec.benchmark = std::string(bench->id);
    job.attempt = 1;
    job.state = JobState::kSucceeded;
    job.timeline.finished = 1'800'000'000'000'000'000;
    CaseRecord plan = MakeCase(0);
    plan.planned = ExpandCases(*bench, {})->front();
    ASSERT_EQ(Commit(*store, {PutJob{job}, PutCases{job.job_id, {plan}},
                              MakeResult(job.job_id, 1, 0, 0.25)}),
              absl::OkStatus());
    EXPECT_EQ(Look(path, absl::StrCat("SELECT time FROM result_", bench->id)), "0.25");
    EXPECT_EQ(Look(path, absl::StrCat("SELECT finished FROM result_", bench->id)),
              "2027-01-15T08:00:00Z");
    EXPECT_EQ(Look(path, absl::StrCat("SELECT iters FROM result_", bench->id)), "0");
  }
}

TEST(SqliteStoreTest, ViewsOfAnotherCatalogueAreReplaced) {
  const TempDir folder;
  const std::string path = folder.File("param.db");
  MustOpen(path).reset();
  Look(path, "CREATE VIEW result_gone AS SELECT 1");
  Look(path, "DROP VIEW result_gemm");
  MustOpen(path).reset();
  std::vector<std::string> views;
  for (const BenchmarkSpec* bench : AllBenchmarks())
    views.push_back(absl::StrCat("result_", bench->id));
  EXPECT_EQ(Look(path, "SELECT group_concat(name) FROM sqlite_schema WHERE type = 'view'"),
            absl::StrJoin(views, ","));
}

TEST(SqliteStoreTest, SchemaSqlIsWhatTheMigrationsAddUpTo) {
  const TempDir folder;
  const std::string path = folder.File("param.db");
  const auto db = Connection::Open(path);
  ASSERT_EQ(db.status(), absl::OkStatus());
  ASSERT_EQ(Migrate(**db, MigrationFiles()), absl::OkStatus());
  const std::string made = absl::StrCat(
      "-- What all migrations add up to. Generated: PARAM_UPDATE_GOLDEN=1 with the store's unit "
      "tests\n-- writes it anew.\n\n",
      *(*db)->ExecForText("SELECT group_concat(sql || ';', char(10, 10)) FROM (SELECT sql FROM "
                          "sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid)"),
      "\n");
  const std::string golden = PARAM_SOURCE_DIR "/sql/schema.sql";
  if (std::getenv("PARAM_UPDATE_GOLDEN") != nullptr) std::ofstream(golden) << made;
  std::ifstream file(golden);
  const std::string kept((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(kept, made) << "run with PARAM_UPDATE_GOLDEN=1";
}

TEST(SqliteStoreTest, SizesOnDiskAreKnown) {
  const TempDir folder;
  const auto store = MustOpen(folder.File("param.db"));
  ASSERT_EQ(Commit(*store, {PutJob{MakeJob("j-1")}}), absl::OkStatus());
  EXPECT_GT(store->DatabaseBytes() + store->WalBytes(), 4096);
}

}  // namespace
}  // namespace param
