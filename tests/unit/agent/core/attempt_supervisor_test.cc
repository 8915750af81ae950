#include "tests/unit/agent/core/attempt_supervisor_fixture.h"

namespace param::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(AttemptSupervisorTest, AGreetedRankGetsItsAssignmentWithItsShareOfTheCores) {
  Begin(GemmAttempt(2, 4, 3));
  Greet(1);
  const auto assignments = launcher_.SentTo<line::Assignment>(1);
  ASSERT_THAT(assignments, SizeIs(1));
  EXPECT_EQ(assignments[0].rank, 1);
  EXPECT_EQ(assignments[0].ranks, 4);
  EXPECT_EQ(assignments[0].local_ranks, 2);
  EXPECT_EQ(assignments[0].device_index, 1);
  EXPECT_EQ(assignments[0].device_backend_path, "/backends/fake.so");
  EXPECT_THAT(assignments[0].cpus, ElementsAre(2, 3));
  EXPECT_EQ(assignments[0].threads, 2);
  EXPECT_THAT(assignments[0].cases, SizeIs(3));
}

TEST_F(AttemptSupervisorTest, TheTokenNeverReachesTheSpool) {
  Begin(GemmAttempt(1, 1, 1));
  Greet(0);
  const auto hellos = Events<line::Hello>(0);
  ASSERT_THAT(hellos, SizeIs(1));
  EXPECT_EQ(hellos[0].token, "");
  EXPECT_EQ(hellos[0].pid, 1000);
}

TEST_F(AttemptSupervisorTest, ACleanRankEndsWithDoneOnlyOnceItHasExited) {
  Begin(GemmAttempt(1, 1, 1));
  Greet(0);
  RunCase(0, 0);
  Say(0, line::Done{});
  EXPECT_THAT(Events<line::Done>(0), IsEmpty());
  EXPECT_FALSE(supervisor_->has_ended());
  supervisor_->OnExit(0, ExitedWith(0));
  EXPECT_THAT(Events<line::Done>(0), SizeIs(1));
  EXPECT_THAT(Events<line::Failure>(0), IsEmpty());
  EXPECT_TRUE(supervisor_->has_ended());
  EXPECT_EQ(supervisor_->outcome(), "succeeded");
}

TEST_F(AttemptSupervisorTest, SequenceNumbersCountFromOnePerRank) {
  Begin(GemmAttempt(2, 2, 1));
  Greet(0);
  Greet(1);
  RunCase(1, 0);
  std::map<int, std::uint64_t> next = {{0, 1}, {1, 1}};
  for (const RankEvent& event : AllEvents()) EXPECT_EQ(event.seq, next[event.rank]++);
  EXPECT_EQ(next[1], 6u);
}

struct Lie {
  const char* name;
  std::vector<line::FromWorker> before;
  line::FromWorker lie;
  const char* cause;
};

class LieTest : public AttemptSupervisorTest, public ::testing::WithParamInterface<Lie> {};

TEST_P(LieTest, EndsTheRankWithWhatWasWrong) {
  Begin(GemmAttempt(2, 2, 2));
  Greet(0);
  Greet(1);
  for (const line::FromWorker& message : GetParam().before) Say(0, message);
  ASSERT_THAT(Events<line::Failure>(0), IsEmpty());
  Say(0, GetParam().lie);
  const line::Failure failure = OnlyFailure(0);
  EXPECT_EQ(failure.code, "INVALID_ARGUMENT");
  EXPECT_THAT(failure.cause, HasSubstr("worker sent "));
  EXPECT_THAT(failure.cause, HasSubstr(GetParam().cause));
  EXPECT_THAT(failure.cause, HasSubstr(absl::StrCat(": line ", GetParam().before.size() + 2)));
  Advance(absl::ZeroDuration());
  EXPECT_THAT(launcher_.signals[0], ElementsAre(SIGTERM));
  EXPECT_THAT(launcher_.SentTo<line::Abort>(1), SizeIs(1));
}

const line::CaseBegin kBegin0{0};
line::CaseEnd End(int index, line::CaseStatus status = line::CaseStatus::kPassed) {
  return {index, status, "", {}, {}};
}
line::CaseEnd Skip(int index) { return End(index, line::CaseStatus::kSkipped); }
line::Samples Times(double value) { return {0, "time", "s", {}, {value}}; }

INSTANTIATE_TEST_SUITE_P(
    All, LieTest,
    ::testing::Values(
        Lie{"CaseOutOfRange", {}, line::CaseBegin{2}, "case 2; there are 2"},
        Lie{"SecondHello", {}, line::Hello{"x", 1, 1, ""}, "hello twice"},
        Lie{"CaseBeginWhileOpen", {kBegin0}, line::CaseBegin{1}, "while 0 is open"},
        Lie{"CaseBeginAfterEnd", {kBegin0, Skip(0)}, kBegin0, "which has ended"},
        Lie{"SamplesWithoutCase", {}, Times(1), "which is not open"},
        Lie{"NegativeTime", {kBegin0}, Times(-1e-9), "a sample of time of -1e-09 s"},
        Lie{"NoTime", {kBegin0}, Times(0), "a sample of time of 0 s"},
        Lie{"EndlessTime", {kBegin0}, Times(3601), "of 3601 s"},
        Lie{"UnknownMetric", {kBegin0}, line::Samples{0, "luck", "s", {}, {1}}, "\"luck\""},
        Lie{"DerivedMetric", {kBegin0}, line::Samples{0, "flops", "FLOP/s", {}, {1}}, "\"flops\""},
        Lie{"WrongUnit", {kBegin0}, line::Samples{0, "time", "ms", {}, {1}}, "instead of s"},
        Lie{"CaseEndTwice", {kBegin0, Skip(0)}, End(0), "case 0 twice"},
        Lie{"PassedWithoutBegin", {}, End(1), "case 1, which is not open"},
        Lie{"PassedWithoutSamples", {kBegin0}, End(0), "case 0 as PASSED without samples of time"},
        Lie{"PassedWithSamplesOfNone",
            {kBegin0, line::Samples{0, "time", "s", {}, {}}},
            End(0),
            "without samples of time"},
        Lie{"PassedWithSamplesOfTheCaseBefore",
            {kBegin0, Times(1), End(0), line::CaseBegin{1}},
            End(1),
            "case 1 as PASSED without samples of time"},
        Lie{"PhasePlace", {}, line::PhaseBegin{line::Phase::kPlace, -1}, "phase place"},
        Lie{"DoneTooSoon", {kBegin0, Skip(0)}, line::Done{}, "done after 1 of 2 cases"},
        Lie{"DoneInACase", {kBegin0}, line::Done{}, "done while case 0 is open"},
        Lie{"RoundAhead", {}, line::Exchange{1, "x"}, "round 1 where 0 is next"},
        Lie{"RoundTwice",
            {line::Exchange{0, "x"}},
            line::Exchange{0, "x"},
            "while round 0 is open"},
        Lie{"FailureThatIsNone",
            {},
            line::Failure{"OK", line::Phase::kTimed, "", "", 0, -1},
            "failure with code"}),
    [](const auto& each) { return std::string(each.param.name); });

TEST_F(AttemptSupervisorTest, GarbageEndsTheRank) {
  Begin(GemmAttempt(1, 1, 1));
  Greet(0);
  SayRaw(0, "\x01\x02 not json");
  EXPECT_THAT(OnlyFailure(0).cause, HasSubstr("worker sent garbage: line 2"));
}

TEST_F(AttemptSupervisorTest, ALineTooLongEndsTheRank) {
  Begin(GemmAttempt(1, 1, 1));
  Greet(0);
  supervisor_->OnBadStream(0, absl::ResourceExhaustedError("a line over 1048576 bytes"));
  EXPECT_THAT(OnlyFailure(0).cause, HasSubstr("line over 1048576"));
}

TEST_F(AttemptSupervisorTest, AWrongTokenFromARankIsItsFailure) {
  Begin(GemmAttempt(1, 1, 1));
  const absl::StatusOr<int> greeted =
      supervisor_->OnGreeting(1000, WorkerLine(line::Hello{"wrong", 1000, kProtocolVersion, ""}));
  EXPECT_FALSE(greeted.ok());
  EXPECT_THAT(OnlyFailure(0).cause, HasSubstr("wrong token"));
}

TEST_F(AttemptSupervisorTest, AWrongTokenFromAStrangerHurtsNobody) {
  Begin(GemmAttempt(1, 1, 1));
  EXPECT_FALSE(supervisor_->OnGreeting(77, WorkerLine(line::Hello{"wrong", 77, 1, ""})).ok());
  EXPECT_THAT(Events<line::Failure>(0), IsEmpty());
  Greet(0);
}

TEST_F(AttemptSupervisorTest, ATokenIsGoodOnce) {
  Begin(GemmAttempt(1, 1, 1));
  Greet(0);
  const line::Hello again{launcher_.tokens[0], 1000, kProtocolVersion, ""};
  EXPECT_FALSE(supervisor_->OnGreeting(1000, WorkerLine(again)).ok());
}

struct Silence {
  const char* phase;
  std::int64_t given_s;
  line::Phase begin;
  std::int64_t case_index;
  const char* cause;
};
class SilenceTest : public AttemptSupervisorTest, public ::testing::WithParamInterface<Silence> {};

TEST_P(SilenceTest, BeyondTheDeadlineOfThePhaseIsAFailureThatNamesIt) {
  const Silence& silence = GetParam();
  StartAttempt start = GemmAttempt(1, 1, 4);
  if (silence.given_s > 0) {
    start.phase_deadlines_ns[silence.phase] = silence.given_s * 1'000'000'000;
  }
  Begin(std::move(start));
  Greet(0);
  Say(0, line::PhaseBegin{silence.begin, silence.case_index});
  const absl::Duration deadline = supervisor_->due() - clock_.Monotonic();
  Advance(deadline - absl::Milliseconds(1));
  EXPECT_THAT(Events<line::Failure>(0), IsEmpty());
  Advance(absl::Milliseconds(1));
  const line::Failure failure = OnlyFailure(0);
  EXPECT_EQ(failure.code, "DEADLINE_EXCEEDED");
  EXPECT_EQ(failure.phase, silence.begin);
  EXPECT_EQ(failure.cause, silence.cause);
  EXPECT_EQ(launcher_.signals[0], std::vector<int>{SIGTERM});
}

INSTANTIATE_TEST_SUITE_P(All, SilenceTest,
                         ::testing::Values(Silence{"timed", 5, line::Phase::kTimed, 3,
                                                   "no progress for 5 s in phase timed, case 3"},
                                           Silence{"timed", 0, line::Phase::kTimed, 0,
                                                   "no progress for 300 s in phase timed, case 0"},
                                           Silence{"rendezvous", 0, line::Phase::kRendezvous, -1,
                                                   "no progress for 60 s in phase rendezvous"},
                                           Silence{"comm_init", 0, line::Phase::kCommInit, -1,
                                                   "no progress for 120 s in phase comm_init"},
                                           Silence{"verify", 2, line::Phase::kVerify, 1,
                                                   "no progress for 2 s in phase verify, case 1"},
                                           Silence{"teardown", 0, line::Phase::kTeardown, -1,
                                                   "no progress for 30 s in phase teardown"}));

TEST_F(AttemptSupervisorTest, ARankThatNeverConnectsFailsInPhaseSpawn) {
  Begin(GemmAttempt(1, 1, 1));
  Advance(absl::Seconds(30));
  EXPECT_EQ(OnlyFailure(0).cause,
            "no progress for 30 s in phase spawn: the worker did not connect");
}

TEST_F(AttemptSupervisorTest, LogLinesAreNoProgress) {
  Begin(GemmAttempt(1, 1, 1));
  Advance(absl::Seconds(29));
  Say(0, line::LogLine{"info", "still here"});
  Advance(absl::Seconds(1));
  EXPECT_EQ(OnlyFailure(0).code, "DEADLINE_EXCEEDED");
}

TEST_F(AttemptSupervisorTest, APhaseSaidAgainIsProgress) {
  StartAttempt start = GemmAttempt(1, 1, 1);
  start.phase_deadlines_ns["timed"] = 5'000'000'000;
  Begin(std::move(start));
  Greet(0);
  Say(0, line::CaseBegin{0});
  for (int i = 0; i < 10; ++i) {
    Say(0, line::PhaseBegin{line::Phase::kTimed, 0});
    Advance(absl::Seconds(4));
  }
  EXPECT_THAT(Events<line::Failure>(0), IsEmpty());
  Advance(absl::Seconds(1));
  EXPECT_EQ(OnlyFailure(0).code, "DEADLINE_EXCEEDED");
}

TEST_F(AttemptSupervisorTest, TheRankThatKeepsTheOthersWaitingIsBlamed) {
  StartAttempt start = GemmAttempt(2, 2, 1);
  start.phase_deadlines_ns["rendezvous"] = 5'000'000'000;
  Begin(std::move(start));
  Greet(0);
  Greet(1);
  Say(1, line::PhaseBegin{line::Phase::kRendezvous, -1});
  Say(0, line::PhaseBegin{line::Phase::kRendezvous, -1});
  Say(0, line::Exchange{0, "mine"});
  Advance(absl::Seconds(5));
  EXPECT_EQ(OnlyFailure(1).code, "DEADLINE_EXCEEDED");
  EXPECT_THAT(Events<line::Failure>(0), IsEmpty());
}

TEST_F(AttemptSupervisorTest, AKilledWorkerAbortsTheOthers) {
  Begin(GemmAttempt(2, 2, 1));
  Greet(0);
  Greet(1);
  Say(0, line::PhaseBegin{line::Phase::kTimed, 0});
  supervisor_->OnExit(0, SIGSEGV);
  EXPECT_EQ(OnlyFailure(0).code, "ABORTED");
  EXPECT_EQ(OnlyFailure(0).cause, "worker killed by SIGSEGV");
  EXPECT_EQ(OnlyFailure(0).phase, line::Phase::kTimed);
  ASSERT_THAT(launcher_.SentTo<line::Abort>(1), SizeIs(1));
  EXPECT_THAT(launcher_.SentTo<line::Abort>(1)[0].reason,
              HasSubstr("rank 0 failed: worker killed by SIGSEGV"));
  supervisor_->OnExit(1, ExitedWith(3));
  EXPECT_EQ(OnlyFailure(1).code, "CANCELLED");
  EXPECT_TRUE(supervisor_->has_ended());
  EXPECT_EQ(supervisor_->outcome(), "failed");
  EXPECT_EQ(supervisor_->first_failure(), "rank 0: worker killed by SIGSEGV");
}

TEST_F(AttemptSupervisorTest, ExitStatusesAreDecoded) {
  Begin(GemmAttempt(1, 1, 1));
  supervisor_->OnExit(0, ExitedWith(0));
  EXPECT_EQ(OnlyFailure(0).code, "DATA_LOSS");
}

TEST_F(AttemptSupervisorTest, ACrashInTeardownAfterDoneIsAFailure) {
  Begin(GemmAttempt(1, 1, 1));
  Greet(0);
  RunCase(0, 0);
  Say(0, line::Done{});
  supervisor_->OnExit(0, SIGABRT);
  EXPECT_THAT(Events<line::Done>(0), IsEmpty());
  EXPECT_EQ(OnlyFailure(0).cause, "worker killed by SIGABRT");
  EXPECT_EQ(OnlyFailure(0).phase, line::Phase::kTeardown);
}

TEST_F(AttemptSupervisorTest, KillsEscalateFromAbortToTermToKill) {
  Begin(GemmAttempt(2, 2, 1));
  Greet(0);
  Greet(1);
  supervisor_->OnExit(0, SIGKILL);
  Advance(absl::Milliseconds(499));
  EXPECT_THAT(launcher_.signals[1], IsEmpty());
  Advance(absl::Milliseconds(1));
  EXPECT_THAT(launcher_.signals[1], ElementsAre(SIGTERM));
  EXPECT_EQ(supervisor_->due() - clock_.Monotonic(), absl::Seconds(2));
  Advance(absl::Seconds(2));
  EXPECT_THAT(launcher_.signals[1], ElementsAre(SIGTERM, SIGKILL));
}

}  // namespace
}  // namespace param::agent
