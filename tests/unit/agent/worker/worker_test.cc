// The real param-worker with the fake backend, against a scripted agent.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "proto/base/version.h"
#include "tests/unit/agent/worker/scripted_agent.h"

namespace param {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class WorkerTest : public ::testing::Test {
 protected:
  // Starts a worker and hands it the assignment.
  LineConnection Begin(const line::Assignment& assignment, pid_t* pid) {
    *pid = agent_.Start("token-1");
    LineConnection connection = agent_.Accept().value();
    hello_ = connection.Await<line::Hello>().value();
    connection.Send(assignment);
    return connection;
  }

  // Runs one rank to its end.
  Transcript Run(const line::Assignment& assignment) {
    pid_t pid = -1;
    LineConnection connection = Begin(assignment, &pid);
    Transcript all;
    while (true) {
      auto message = connection.Next();
      if (!message.ok()) break;
      all.messages.push_back(*std::move(message));
    }
    all.exit_code = agent_.Wait(pid);
    return all;
  }

  // Runs as many ranks as the assignment says, carrying their exchanges.
  std::vector<Transcript> RunRanks(line::Assignment assignment) {
    const int ranks = assignment.ranks;
    std::vector<pid_t> pids;
    std::vector<LineConnection> connections;
    for (int rank = 0; rank < ranks; ++rank) {
      assignment.rank = assignment.local_rank = rank;
      pids.push_back(-1);
      connections.push_back(Begin(assignment, &pids.back()));
    }
    std::vector<Transcript> all(static_cast<std::size_t>(ranks));
    std::set<std::size_t> open;
    for (std::size_t i = 0; i < connections.size(); ++i) open.insert(i);
    while (!open.empty()) {
      line::ExchangeReply reply;
      for (const std::size_t i : std::set<std::size_t>(open)) {
        while (true) {
          auto message = connections[i].Next();
          if (!message.ok()) {
            open.erase(i);
            break;
          }
          all[i].messages.push_back(*message);
          if (const auto* part = std::get_if<line::Exchange>(&*message)) {
            reply.round = part->round;
            reply.data.push_back(part->data);
            break;
          }
        }
      }
      if (reply.data.size() == connections.size()) {
        for (LineConnection& connection : connections) connection.Send(reply);
      }
    }
    for (std::size_t i = 0; i < pids.size(); ++i) all[i].exit_code = agent_.Wait(pids[i]);
    return all;
  }

  line::Assignment WithScript(GivenParams given, const std::string& script) {
    line::Assignment assignment = GemmAssignment(std::move(given));
    assignment.fake_script = agent_.WriteFile("script", script);
    return assignment;
  }

  ScriptedAgent agent_;
  line::Hello hello_;
};

TEST_F(WorkerTest, SaysHelloWithItsTokenAndVersion) {
  const Transcript all = Run(GemmAssignment({{"iters", "3"}}));
  EXPECT_EQ(hello_.token, "token-1");
  EXPECT_EQ(hello_.protocol, kProtocolVersion);
  EXPECT_EQ(hello_.version, std::string(Version()));
  EXPECT_GT(hello_.pid, 1);
  EXPECT_EQ(all.exit_code, 0);
}

TEST_F(WorkerTest, RunsItsCasesThroughAllPhases) {
  const Transcript all = Run(GemmAssignment({{"iters", "7"}, {"k", "8,16"}}));
  ASSERT_EQ(all.exit_code, 0);
  std::vector<std::string> phases;
  for (const line::PhaseBegin& begin : all.All<line::PhaseBegin>()) {
    phases.push_back(std::string(line::PhaseName(begin.phase)) + " " +
                     std::to_string(begin.case_index));
  }
  EXPECT_THAT(phases, ElementsAre("rendezvous -1", "comm_init -1", "verify 0", "warmup 0",
                                  "timed 0", "verify 1", "warmup 1", "timed 1", "teardown -1"));
  EXPECT_THAT(all.All<line::PhaseEnd>(), SizeIs(phases.size() + 1));  // spawn's
  for (const line::Samples& samples : all.All<line::Samples>()) {
    EXPECT_EQ(samples.metric, "time");
    EXPECT_EQ(samples.unit, "s");
    EXPECT_THAT(samples.values, SizeIs(7));
  }
  const auto ends = all.All<line::CaseEnd>();
  ASSERT_THAT(ends, SizeIs(2));
  EXPECT_EQ(ends[1].case_index, 1);
  EXPECT_EQ(ends[1].status, line::CaseStatus::kPassed) << ends[1].reason;
  EXPECT_EQ(ends[1].info.at("stopped_by"), "iters");
  EXPECT_LE(ends[1].scalars.at("max_error"), 1);
  EXPECT_GT(ends[1].scalars.count("timer_overhead"), 0u);
  EXPECT_TRUE(std::holds_alternative<line::Done>(all.messages.back()));
}

TEST_F(WorkerTest, ReportsWhereItRan) {
  line::Assignment assignment = GemmAssignment({{"iters", "1"}});
  assignment.cpus = {0};
  assignment.threads = 3;
  const auto facts = Run(assignment).All<line::Environment>();
  ASSERT_THAT(facts, SizeIs(1));
  EXPECT_EQ(facts[0].facts.at("affinity"), "0");
  EXPECT_EQ(facts[0].facts.at("threads"), "3");
  EXPECT_EQ(facts[0].facts.at("env.OMP_NUM_THREADS"), "3");
  EXPECT_EQ(facts[0].facts.at("version"), std::string(Version()));
  EXPECT_EQ(facts[0].facts.count("backend.fake"), 1u);
  for (const auto& [name, value] : facts[0].facts) {
    EXPECT_THAT(value, Not(HasSubstr("token-1"))) << name;
  }
}

TEST_F(WorkerTest, SkipsWhatTheBackendCannotDo) {
  const Transcript all = Run(GemmAssignment({{"iters", "2"}, {"dtype", "bf16,f32"}}));
  ASSERT_EQ(all.exit_code, 0);
  const auto ends = all.All<line::CaseEnd>();
  ASSERT_THAT(ends, SizeIs(2));
  EXPECT_EQ(ends[0].status, line::CaseStatus::kSkipped);
  EXPECT_THAT(ends[0].reason, HasSubstr("bf16"));
  EXPECT_EQ(ends[1].status, line::CaseStatus::kPassed);
}

TEST_F(WorkerTest, AnInjectedFlipMakesTheCaseWrongInEveryTypeOfTheBackend) {
  const Transcript all = Run(GemmAssignment(
      {{"iters", "2"}, {"dtype", "f64,f32,i8"}, {"beta", "0,1"}, {"inject", "flip@0:13"}}));
  ASSERT_EQ(all.exit_code, 0);
  const auto ends = all.All<line::CaseEnd>();
  ASSERT_THAT(ends, SizeIs(6));
  for (const line::CaseEnd& end : ends) {
    EXPECT_EQ(end.status, line::CaseStatus::kWrong);
    EXPECT_THAT(end.reason, AllOf(HasSubstr("rank 0"), HasSubstr("element 13")));
  }
}

TEST_F(WorkerTest, AWrongBackendIsFoundWithoutInjection) {
  const Transcript all =
      Run(WithScript({{"iters", "2"}}, R"({"faults": [{"at": "verify", "kind": "wrong"}]})"));
  ASSERT_THAT(all.All<line::CaseEnd>(), SizeIs(1));
  EXPECT_EQ(all.All<line::CaseEnd>()[0].status, line::CaseStatus::kWrong);
}

TEST_F(WorkerTest, FailsTheCaseOfAnInjectionThatCannotBeSeen) {
  struct Wrong {
    const char* inject;
    bool check;
    const char* reason;
  };
  for (const auto& [inject, check, reason] :
       {Wrong{"flip@0:64", true, "element 64 is not one of the 64 output elements of rank 0"},
        Wrong{"flip@1:0", true, "rank 1 is not one of the job's 1 ranks (0 to 0)"},
        Wrong{"flip@0:0", false, "without --check it"}}) {
    line::Assignment assignment = GemmAssignment({{"inject", std::string(inject)}});
    assignment.cases[0].params["check"] = check;  // which the catalogue would have refused
    const Transcript all = Run(assignment);
    EXPECT_EQ(all.exit_code, 0);
    EXPECT_THAT(all.All<line::Failure>(), IsEmpty());
    ASSERT_THAT(all.All<line::CaseEnd>(), SizeIs(1));
    EXPECT_EQ(all.All<line::CaseEnd>()[0].status, line::CaseStatus::kFailed);
    EXPECT_THAT(all.All<line::CaseEnd>()[0].reason,
                testing::AllOf(HasSubstr("--inject: "), HasSubstr(reason)));
  }
}

TEST_F(WorkerTest, AFailedCaseDoesNotEndTheOnesAfterIt) {
  line::Assignment assignment =
      GemmAssignment({{"iters", "2"}, {"k", "8,16,32"}, {"inject", "flip@0:13"}});
  assignment.cases[1].params["inject"] = "flip@0:1000000";
  assignment.ranks = assignment.local_ranks = 2;
  assignment.rank_nodes = {"n1", "n2"};
  for (const Transcript& rank : RunRanks(assignment)) {
    EXPECT_EQ(rank.exit_code, 0);
    const auto ends = rank.All<line::CaseEnd>();
    ASSERT_THAT(ends, SizeIs(3));
    EXPECT_EQ(ends[1].status, line::CaseStatus::kFailed);
    EXPECT_NE(ends[2].status, line::CaseStatus::kFailed);
    EXPECT_THAT(rank.All<line::Samples>(), SizeIs(2));
  }
}

TEST_F(WorkerTest, ACaseFailsOnAllRanksForTheMemoryThatOneDoesNotGet) {
  line::Assignment assignment = WithScript({{"iters", "2"}, {"k", "8,16"}},
                                           R"({"faults": [{"at": "case", "kind": "error",
                                               "rank": 1, "code": 8, "text": "no memory"}]})");
  assignment.ranks = assignment.local_ranks = 2;
  assignment.rank_nodes = {"n1", "n2"};
  const std::vector<Transcript> ranks = RunRanks(assignment);
  for (const Transcript& rank : ranks) {
    EXPECT_EQ(rank.exit_code, 0);
    const auto ends = rank.All<line::CaseEnd>();
    ASSERT_THAT(ends, SizeIs(2));
    EXPECT_EQ(ends[0].status, line::CaseStatus::kFailed);
  }
  EXPECT_THAT(ranks[0].All<line::CaseEnd>()[0].reason, HasSubstr("rank 1: "));
  EXPECT_THAT(ranks[0].All<line::CaseEnd>()[0].reason, HasSubstr("no memory"));
  EXPECT_THAT(ranks[1].All<line::CaseEnd>()[0].reason, Not(HasSubstr("rank 1: ")));
}

TEST_F(WorkerTest, RanksTakeEquallyManySamplesThoughOneIsSlow) {
  line::Assignment assignment =
      WithScript({{"min_time", "0.01"}, {"max_time", "0.1"}},
                 R"({"latency_ns": 100000, "rank_latency_ns": {"1": 300000}, "real_time": true})");
  assignment.ranks = assignment.local_ranks = 2;
  assignment.rank_nodes = {"n1", "n2"};
  const auto ranks = RunRanks(assignment);
  std::set<std::size_t> counts;
  for (const Transcript& rank : ranks) {
    EXPECT_EQ(rank.exit_code, 0);
    std::size_t count = 0;
    for (const line::Samples& samples : rank.All<line::Samples>()) count += samples.values.size();
    counts.insert(count);
  }
  EXPECT_THAT(counts, AllOf(SizeIs(1), Each(Gt(0u))));
}

TEST_F(WorkerTest, AllRanksSkipWhatOneCannotDo) {
  line::Assignment assignment = WithScript(
      {{"iters", "2"}},
      R"({"faults": [{"at": "case", "kind": "error", "rank": 1, "code": 12, "text": "not here"}]})");
  assignment.ranks = assignment.local_ranks = 2;
  assignment.rank_nodes = {"n1", "n2"};
  for (const Transcript& rank : RunRanks(assignment)) {
    const auto ends = rank.All<line::CaseEnd>();
    ASSERT_THAT(ends, SizeIs(1));
    EXPECT_EQ(ends[0].status, line::CaseStatus::kSkipped);
    EXPECT_THAT(ends[0].reason, HasSubstr("not here"));
    EXPECT_THAT(rank.All<line::Samples>(), IsEmpty());
  }
}

TEST_F(WorkerTest, AFailureNamesCodePhaseCauseAndCase) {
  const Transcript all = Run(WithScript(
      {{"iters", "50"}},
      R"({"faults": [{"at": "timed", "kind": "error", "after": 3, "code": 15, "text": "ECC"}]})"));
  EXPECT_EQ(all.exit_code, 1);
  const auto failures = all.All<line::Failure>();
  ASSERT_THAT(failures, SizeIs(1));
  EXPECT_EQ(failures[0].code, "DATA_LOSS");
  EXPECT_EQ(failures[0].phase, line::Phase::kTimed);
  EXPECT_THAT(failures[0].cause, HasSubstr("ECC"));
  EXPECT_EQ(failures[0].case_index, 0);
}

TEST_F(WorkerTest, ABackendThatIsNotThereFailsInSpawn) {
  line::Assignment assignment = GemmAssignment({});
  assignment.device_backend_path = "/nowhere/x.so";
  const Transcript all = Run(assignment);
  EXPECT_EQ(all.exit_code, 1);
  ASSERT_THAT(all.All<line::Failure>(), SizeIs(1));
  EXPECT_EQ(all.All<line::Failure>()[0].phase, line::Phase::kSpawn);
  EXPECT_THAT(all.All<line::Failure>()[0].cause, HasSubstr("/nowhere/x.so"));
}

TEST_F(WorkerTest, RefusesAnotherVersionOfTheBenchmark) {
  line::Assignment assignment = GemmAssignment({});
  ++assignment.benchmark_version;
  const Transcript all = Run(assignment);
  EXPECT_EQ(all.exit_code, 1);
  EXPECT_EQ(all.All<line::Failure>().at(0).code, "FAILED_PRECONDITION");
}

TEST_F(WorkerTest, LeavesAtEndOfFileEvenWhileHanging) {
  pid_t pid = -1;
  LineConnection connection = Begin(
      WithScript({{"iters", "50"}}, R"({"faults": [{"at": "timed", "kind": "hang"}]})"), &pid);
  line::PhaseBegin begin;
  while (begin.phase != line::Phase::kTimed) begin = connection.Await<line::PhaseBegin>().value();
  connection.Close();
  EXPECT_EQ(agent_.Wait(pid), 3);
}

TEST_F(WorkerTest, LeavesOnAbort) {
  pid_t pid = -1;
  LineConnection connection = Begin(
      WithScript({{"iters", "50"}}, R"({"faults": [{"at": "verify", "kind": "hang"}]})"), &pid);
  ASSERT_TRUE(connection.Await<line::CaseBegin>().ok());
  connection.Send(line::Abort{"rank 1 failed"});
  EXPECT_EQ(agent_.Wait(pid), 3);
}

TEST_F(WorkerTest, ACancelledJobEndsByItselfInTheMiddleOfACase) {
  pid_t pid = -1;
  LineConnection connection = Begin(
      WithScript({{"iters", "1000000"}}, R"({"latency_ns": 100000, "real_time": true})"), &pid);
  line::PhaseBegin begin;
  while (begin.phase != line::Phase::kTimed) begin = connection.Await<line::PhaseBegin>().value();
  connection.Send(line::Cancel{"by the user"});
  EXPECT_TRUE(connection.Await<line::Done>().ok());
  EXPECT_EQ(agent_.Wait(pid), 0);
}

TEST_F(WorkerTest, ARankThatWaitsForOthersHearsOfTheCancel) {
  line::Assignment assignment = GemmAssignment({});
  assignment.ranks = 2;
  pid_t pid = -1;
  LineConnection connection = Begin(assignment, &pid);
  ASSERT_TRUE(connection.Await<line::Exchange>().ok());
  connection.Send(line::Cancel{"by the user"});
  EXPECT_TRUE(connection.Await<line::Done>().ok());
  EXPECT_EQ(agent_.Wait(pid), 0);
}

TEST_F(WorkerTest, BringsUpACommunicatorOverAllRanks) {
  line::Assignment assignment = GemmAssignment({{"iters", "2"}});
  assignment.comm_backend_paths = {FakePath()};
  assignment.ranks = assignment.local_ranks = 2;
  assignment.rank_nodes = {"n1", "n2"};
  for (const Transcript& rank : RunRanks(assignment)) {
    EXPECT_EQ(rank.exit_code, 0);
    for (const line::Failure& failure : rank.All<line::Failure>()) ADD_FAILURE() << failure.cause;
  }
}

TEST_F(WorkerTest, TheTokenIsNotInItsEnvironmentAfterHello) {
  pid_t pid = -1;
  LineConnection connection = Begin(
      WithScript({{"iters", "1"}}, R"({"faults": [{"at": "verify", "kind": "hang"}]})"), &pid);
  std::ifstream file("/proc/" + std::to_string(pid) + "/environ");
  const std::string seen((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_THAT(seen, Not(IsEmpty()));
  EXPECT_THAT(seen, Not(HasSubstr("token-1")));
}

// Exit code and standard output of a command.
std::pair<int, std::string> Command(const std::string& arguments) {
  FILE* const pipe = popen((WorkerPath() + " " + arguments + " 2>/dev/null").c_str(), "r");
  std::string out;
  char buffer[4096];
  while (const std::size_t got = fread(buffer, 1, sizeof(buffer), pipe)) out.append(buffer, got);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out};
}

TEST(WorkerCommand, ProbePrintsOneLineAboutABackend) {
  const auto [code, out] = Command("--probe " + FakePath());
  EXPECT_EQ(code, 0);
  EXPECT_THAT(out, HasSubstr("\"name\""));
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 1);
}

TEST(WorkerCommand, ProbeOfNothingSaysWhy) {
  const auto [code, out] = Command("--probe /nowhere.so");
  EXPECT_EQ(code, 0);
  EXPECT_THAT(out, HasSubstr("/nowhere.so"));
}

TEST(WorkerCommand, VersionAndHelpGoToStandardOutput) {
  EXPECT_THAT(Command("--version").second, HasSubstr(std::string(Version())));
  EXPECT_THAT(Command("--help").second, HasSubstr("--probe"));
}

TEST(WorkerCommand, WrongUseIsTwo) {
  EXPECT_EQ(Command("--nonsense").first, 2);
  EXPECT_EQ(Command("--probe").first, 2);
  EXPECT_EQ(Command("").first, 2);  // no socket, no token
}

}  // namespace
}  // namespace param
