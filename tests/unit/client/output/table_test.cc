#include "client/output/table.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <limits>
#include <sstream>
#include <string>

#include "client/output/progress.h"
#include "client/output/terminal.h"
#include "tests/fakes/fake_clock.h"

namespace param {
namespace {

Table Sample() {
  Table table;
  table.columns = {{"name", "NAME"},
                   {"time", "TIME", "s", Align::kRight, Scale::kSi},
                   {"share", "SHARE", "1", Align::kRight, Scale::kPercent},
                   {"more", "MORE", "", Align::kLeft, Scale::kPlain, true}};
  table.rows.push_back({{std::string("a,\"b\"\nc")}, {0.0012345}, {0.5}, {true}});
  table.rows.push_back(
      {{std::string("d")}, {std::numeric_limits<double>::quiet_NaN()}, {}, {std::int64_t{7}}});
  return table;
}

TEST(TextTable, ScalesAlignsAndHidesWideColumns) {
  std::ostringstream out;
  RenderText(Sample(), {}, out);
  EXPECT_EQ(out.str(),
            "NAME         TIME   SHARE\n"
            "a,\"b\" c  1.234 ms  50.0 %\n"
            "d               -       -\n");
}

TEST(TextTable, ShowsAllColumnsWhenWide) {
  std::ostringstream out;
  RenderText(Sample(), {.wide = true, .indent = ""}, out);
  EXPECT_NE(out.str().find("MORE"), std::string::npos);
  EXPECT_NE(out.str().find("yes"), std::string::npos);
}

TEST(TextTable, ColoursOnlyWhenAsked) {
  Table table;
  table.columns = {{"state", "STATE"}};
  table.rows.push_back({{std::string("FAILED"), Style::kBad}});
  std::ostringstream plain, colored;
  RenderText(table, {}, plain);
  RenderText(table, {.color = true, .indent = ""}, colored);
  EXPECT_EQ(plain.str(), "STATE\nFAILED\n");
  EXPECT_EQ(colored.str(), "\x1b[1mSTATE\x1b[0m\n\x1b[31mFAILED\x1b[0m\n");
}

TEST(TextTable, DisarmsControlCharactersOfForeignText) {
  Table table;
  table.columns = {{"text", "TEXT"}};
  table.rows.push_back({{std::string("\x1b[2J")}});
  std::ostringstream out;
  RenderText(table, {}, out);
  EXPECT_EQ(out.str(), "TEXT\n\\x1b[2J\n");
}

TEST(CsvTable, QuotesAsRfc4180AndKeepsDigitsAndUnits) {
  std::ostringstream out;
  RenderCsv(Sample(), out);
  EXPECT_EQ(out.str(),
            "name,time (s),share,more\n"
            "\"a,\"\"b\"\"\nc\",0.0012345,0.5,true\n"
            "d,,,7\n");
}

TEST(JsonTable, HasRowsUnderItsKeyAndNullForNothing) {
  std::ostringstream lines, document;
  RenderJsonl(Sample(), lines);
  RenderJson(Sample(), "rows", document);
  EXPECT_EQ(lines.str(),
            "{\"name\":\"a,\\\"b\\\"\\nc\",\"time\":0.0012345,\"share\":0.5,\"more\":true}\n"
            "{\"name\":\"d\",\"time\":null,\"share\":null,\"more\":7}\n");
  EXPECT_EQ(document.str().rfind("{\n  \"rows\": [", 0), 0u);
}

TEST(Color, FollowsTheFlagThenTheTerminal) {
  EXPECT_TRUE(UseColor(false, {.is_tty = true, .no_color = "", .term = "xterm"}));
  EXPECT_FALSE(UseColor(true, {.is_tty = true, .no_color = "", .term = "xterm"}));
  EXPECT_FALSE(UseColor(false, {.is_tty = true, .no_color = "1", .term = "xterm"}));
  EXPECT_FALSE(UseColor(false, {.is_tty = true, .no_color = "", .term = "dumb"}));
  EXPECT_FALSE(UseColor(false, {.is_tty = false, .no_color = "", .term = "xterm"}));
}

TEST(Width, CountsCodePointsNotBytes) { EXPECT_EQ(DisplayWidth("\xc2\xb5s"), 2u); }

TEST(Progress, RedrawsOneLineOnATerminalAndRemovesIt) {
  std::ostringstream err;
  const FakeClock clock;
  {
    Progress progress(err, {.is_tty = true, .no_color = "", .term = "xterm"}, false, clock);
    progress.Show("running", "1/4");
    progress.Show("running", "1/4");
    progress.Show("running", "2/4");
  }
  EXPECT_EQ(err.str(), "\r\x1b[Krunning  1/4\r\x1b[Krunning  2/4\r\x1b[K");
}

TEST(Progress, WritesOneLinePerChangeAndTenSecondsElsewhere) {
  std::ostringstream err;
  FakeClock clock;
  Progress progress(err, {}, false, clock);
  progress.Show("queued", "0/4");
  progress.Show("queued", "1/4");
  progress.Show("running", "1/4");
  clock.Advance(absl::Seconds(11));
  progress.Show("running", "2/4");
  EXPECT_EQ(err.str(), "queued\nrunning\n");
}

TEST(Progress, SaysNothingWhenSilent) {
  std::ostringstream err;
  const FakeClock clock;
  Progress progress(err, {.is_tty = true, .no_color = "", .term = "xterm"}, true, clock);
  progress.Show("running");
  progress.Note("lost");
  EXPECT_EQ(err.str(), "");
}

TEST(FdBuffer, RemembersThatTheReaderWentAway) {
  FdBuffer buffer(-1);
  std::ostream out(&buffer);
  out << "text" << std::flush;
  EXPECT_FALSE(out.good());
  EXPECT_EQ(buffer.error(), EBADF);
}

}  // namespace
}  // namespace param
