#include "agent/process/disk_spool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "agent/process/spool_record.h"
#include "tests/unit/agent/process/process_fixture.h"

namespace param::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

RankEvent Event(std::uint64_t seq, std::string line = "line", int rank = 0) {
  return {.key = {"j-abc", 3}, .rank = rank, .seq = seq, .time_ns = 42, .line = std::move(line)};
}

class DiskSpoolTest : public ProcessTest {
 protected:
  std::unique_ptr<DiskSpool> Open(std::int64_t limit = 1 << 20, std::int64_t segment = 4096) {
    absl::StatusOr<std::unique_ptr<DiskSpool>> spool = DiskSpool::Open(
        {.folder = Path("spool"), .limit_bytes = limit, .segment_bytes = segment}, log_.log);
    EXPECT_TRUE(spool.ok()) << spool.status();
    return *std::move(spool);
  }
  static void Put(Spool& spool, const RankEvent& event) {
    const absl::Status status = spool.Append(event, Spool::Importance::kEvent);
    ASSERT_TRUE(status.ok()) << status;
  }
  static std::vector<RankEvent> All(Spool& spool) {
    return spool.Read(0, 1 << 20, 1 << 30)->events;
  }
  std::vector<std::filesystem::path> Segments() const {
    std::vector<std::filesystem::path> all;
    for (const auto& entry : std::filesystem::directory_iterator(Path("spool"))) {
      all.push_back(entry.path());
    }
    std::sort(all.begin(), all.end());
    return all;
  }
};

TEST(SpoolRecordTest, IsTheEventAndItsCheck) {
  EXPECT_EQ(Crc32("123456789"), 0xCBF43926u);
  const RankEvent event = Event(7, std::string("a\0b\n", 4));
  const std::string record = EncodeSpoolRecord(event);
  std::size_t size = 0;
  EXPECT_EQ(*DecodeSpoolRecord(record + "more", &size), event);
  EXPECT_EQ(size, record.size());
  for (std::size_t cut = 0; cut < record.size(); ++cut) {
    EXPECT_FALSE(DecodeSpoolRecord(record.substr(0, cut), &size).has_value()) << cut;
  }
  for (std::size_t at = 0; at < record.size(); ++at) {
    std::string damaged = record;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_FALSE(DecodeSpoolRecord(damaged, &size).has_value()) << at;
  }
}

TEST_F(DiskSpoolTest, KeepsEventsOverARestart) {
  {
    const auto spool = Open();
    Put(*spool, Event(1, "one"));
    Put(*spool, Event(2, "two"));
  }
  const auto spool = Open();
  EXPECT_THAT(All(*spool), ElementsAre(Event(1, "one"), Event(2, "two")));
  Put(*spool, Event(3, "three"));
  EXPECT_THAT(All(*spool), SizeIs(3));
}

TEST_F(DiskSpoolTest, CutsATornTailAndGoesOn) {
  {
    const auto spool = Open();
    Put(*spool, Event(1));
    Put(*spool, Event(2));
  }
  const std::filesystem::path segment = Segments().back();
  std::filesystem::resize_file(segment, std::filesystem::file_size(segment) - 3);
  {
    const auto spool = Open();
    EXPECT_THAT(All(*spool), ElementsAre(Event(1)));
    EXPECT_TRUE(log_.Has("torn tail"));
    Put(*spool, Event(2, "again"));
  }
  EXPECT_THAT(All(*Open()), ElementsAre(Event(1), Event(2, "again")));
}

TEST_F(DiskSpoolTest, ADamagedRecordIsNeverPassedOn) {
  {
    const auto spool = Open();
    Put(*spool, Event(1));
    Put(*spool, Event(2));
  }
  std::fstream file(Segments().back(), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  file.put('X');
  file.close();
  EXPECT_THAT(All(*Open()), ElementsAre(Event(1)));
}

TEST_F(DiskSpoolTest, ManySegmentsAreReadInOrderAndDeletedWhenAcknowledged) {
  const auto spool = Open();
  for (std::uint64_t seq = 1; seq <= 40; ++seq) Put(*spool, Event(seq, std::string(1000, 'x')));
  EXPECT_GT(Segments().size(), 5u);
  std::uint64_t expected = 1;
  for (const RankEvent& event : All(*spool)) EXPECT_EQ(event.seq, expected++);
  EXPECT_EQ(expected, 41u);
  spool->Ack({{"j-abc", 3}, 0, 40});
  EXPECT_LE(Segments().size(), 1u);
  EXPECT_EQ(spool->bytes(), 0);
  EXPECT_THAT(All(*spool), IsEmpty());
  Put(*spool, Event(41));
  EXPECT_THAT(All(*spool), ElementsAre(Event(41)));
  EXPECT_TRUE(spool->Flush().ok());
}

TEST_F(DiskSpoolTest, AcknowledgedSegmentsDoNotComeBack) {
  {
    const auto spool = Open();
    for (std::uint64_t seq = 1; seq <= 20; ++seq) Put(*spool, Event(seq, std::string(1000, 'x')));
    spool->Ack({{"j-abc", 3}, 0, 15});
  }
  const std::vector<RankEvent> left = All(*Open());
  ASSERT_FALSE(left.empty());
  EXPECT_GT(left.front().seq, 10u);  // whole segments only
  EXPECT_EQ(left.back().seq, 20u);
}

TEST_F(DiskSpoolTest, AtItsLimitItNamesTheFolderAndStillTakesAnEnd) {
  const auto spool = Open(/*limit=*/2000);
  absl::Status status;
  std::uint64_t seq = 1;
  while (status.ok()) {
    status = spool->Append(Event(seq++, std::string(500, 'x')), Spool::Importance::kEvent);
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr(Path("spool")));
  EXPECT_TRUE(spool->Append(Event(seq, "end"), Spool::Importance::kEnd).ok());
  EXPECT_EQ(All(*spool).back().line, "end");
}

TEST_F(DiskSpoolTest, AFullDiskIsAnErrorAndTheEndIsKeptInMemory) {
  // In a child: the limit holds for the whole process.
  const auto fill = [this] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto spool = Open();
    absl::Status status;
    std::uint64_t seq = 0;
    while (status.ok() && seq < 100) {
      status = spool->Append(Event(++seq, std::string(300, 'x')), Spool::Importance::kEvent);
    }
    const bool refused = status.code() == absl::StatusCode::kResourceExhausted && seq == 3;
    const bool kept = spool->Append(Event(seq, "end"), Spool::Importance::kEnd).ok();
    const std::vector<RankEvent> all = All(*spool);
    const bool whole = all.size() == 3 && all[1].line.size() == 300 && all[2].line == "end";
    spool->Ack({{"j-abc", 3}, 0, 10});
    ::_exit(refused && kept && whole && spool->events() == 0 ? 0 : 1);
  };
  EXPECT_EXIT(fill(), ::testing::ExitedWithCode(0), "");
}

TEST_F(DiskSpoolTest, ManyTinyEventsAreRefusedWhenTheirIndexIsFullAndAnEndIsNot) {
  const auto spool = *DiskSpool::Open({.folder = Path("spool"), .max_index_bytes = 2000}, log_.log);
  absl::Status status;
  std::uint64_t seq = 0;
  while (status.ok() && seq < 1000) {
    status = spool->Append(Event(++seq, ""), Spool::Importance::kEvent);
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr(Path("spool")));
  EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat(seq - 1, " events")));
  EXPECT_LT(seq, 100u);
  EXPECT_TRUE(spool->Append(Event(seq, "end"), Spool::Importance::kEnd).ok());
  spool->Ack({{"j-abc", 3}, 0, seq});
  Put(*spool, Event(seq + 1));  // there is room again
}

TEST_F(DiskSpoolTest, EndsThatTheDiskDoesNotTakeAreBoundedInMemoryByTheirBytes) {
  // In a child: the limit holds for the whole process.
  const auto fill = [this] {
    ::signal(SIGXFSZ, SIG_IGN);
    const auto spool =
        *DiskSpool::Open({.folder = Path("spool"), .max_memory_bytes = 1000}, log_.log);
    const rlimit limit{0, 0};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto end = [&spool](std::uint64_t seq) {
      return spool->Append(Event(seq, std::string(400, 'x')), Spool::Importance::kEnd);
    };
    const bool kept = end(1).ok() && end(2).ok();
    const bool refused = absl::IsResourceExhausted(end(3)) && All(*spool).size() == 2;
    spool->Ack({{"j-abc", 3}, 0, 1});
    const bool again = end(3).ok();
    ::_exit(kept && refused && again ? 0 : 1);
  };
  EXPECT_EXIT(fill(), ::testing::ExitedWithCode(0), "");
}

TEST_F(DiskSpoolTest, AFolderThatCannotBeMadeIsAnError) {
  std::ofstream(Path("file")) << "";
  EXPECT_FALSE(DiskSpool::Open({.folder = Path("file/spool")}, log_.log).ok());
}

}  // namespace
}  // namespace param::agent
