// The sample texts are our own, written after the formats' sources: nccl-tests 2.19 src/util.cu and
// OSU 7.4 c/util/osu_util_mpi.c.

#include "client/import/importer.h"

#include <gtest/gtest.h>

#include <string>

namespace param {
namespace {

constexpr absl::string_view kNcclText = R"(some launcher noise
# nccl-tests version 2.19.6 nccl-headers=22906 nccl-library=22906
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 8 maxBytes 1024 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0 unalign: 0
#
# Using devices
#  Rank  0 Group  0 Pid   6899 on      hostA device  0 [0000:04:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   6900 on      hostA device  1 [0000:0b:00] NVIDIA H100 80GB HBM3
#  Rank  2 Group  0 Pid   6733 on      hostB device  0 [0000:04:00] NVIDIA H100 80GB HBM3
#  Rank  3 Group  0 Pid   6734 on      hostB device  1 [0000:0b:00] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
hostA:6899:6899 [0] NCCL INFO Bootstrap : Using eth0
           8             2     float     sum      -1    20.50    0.00    0.00       0    19.25    0.00    0.00       0
        1024           256     float     sum      -1    25.00    0.04    0.06       0    24.00    0.04    0.06     N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.031
#
)";

const v1::Summary& Metric(const v1::ImportedCase& one, absl::string_view name) {
  for (const v1::Measurement& m : one.measurements()) {
    if (m.metric() == name) return m.summary();
  }
  ADD_FAILURE() << "no metric " << name;
  static const auto* const none = new v1::Summary();
  return *none;
}

Imported Read(absl::string_view format, absl::string_view text, ImportHints hints = {}) {
  absl::StatusOr<Imported> imported = ImportResults(format, "f.txt", text, hints);
  EXPECT_TRUE(imported.ok()) << imported.status();
  return imported.ok() ? *std::move(imported) : Imported();
}

std::string Error(absl::string_view format, absl::string_view text, ImportHints hints = {}) {
  const absl::Status status = ImportResults(format, "f.txt", text, hints).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

std::string With(absl::string_view row) { return std::string(kNcclText) + std::string(row) + "\n"; }

TEST(NcclTestsText, IsReadWithItsRanksHostsAndBothPlacements) {
  const Imported imported = Read("auto", kNcclText);
  const v1::ImportRequest& request = imported.request;
  EXPECT_TRUE(imported.notes.empty());
  EXPECT_EQ(request.format(), "nccl-tests");
  EXPECT_EQ(request.benchmark(), "collective");
  EXPECT_EQ(request.backend(), "cuda+nccl");
  EXPECT_EQ(request.ranks(), 4);
  ASSERT_EQ(request.nodes_size(), 2);
  EXPECT_EQ(request.nodes(1), "hostB");
  ASSERT_EQ(request.cases_size(), 4);
  const v1::ImportedCase& first = request.cases(0);
  EXPECT_EQ(first.params().at("op"), "all_reduce");
  EXPECT_EQ(first.params().at("dtype"), "f32");
  EXPECT_EQ(first.params().at("redop"), "sum");
  EXPECT_EQ(first.params().at("size"), "8");
  EXPECT_EQ(first.params().count("root"), 0u);
  EXPECT_EQ(first.params().count("in_place"), 0u);
  EXPECT_EQ(first.status(), v1::PASSED);
  EXPECT_EQ(first.info().at("statistic"), "mean of 20 iterations");
  EXPECT_EQ(Metric(first, "time").n(), 1);
  EXPECT_DOUBLE_EQ(Metric(first, "time").p50(), 20.5e-6);
  EXPECT_DOUBLE_EQ(Metric(first, "algbw").p50(), 8 / 20.5e-6);
  EXPECT_DOUBLE_EQ(Metric(first, "busbw").p50(), 8 / 20.5e-6 * 1.5);
  EXPECT_EQ(Metric(first, "bytes_total").p50(), 8);
  EXPECT_EQ(request.cases(1).params().at("in_place"), "true");
  EXPECT_DOUBLE_EQ(Metric(request.cases(1), "time").p50(), 19.25e-6);
}

TEST(NcclTestsText, WrongElementsMakeTheCaseWrong) {
  const Imported imported = Read(
      "nccl-tests", With("        2048           512     float     sum      -1    25.00    0.08    "
                         "0.12       3    24.00    0.08    0.12       0"));
  ASSERT_EQ(imported.request.cases_size(), 6);
  EXPECT_EQ(imported.request.cases(4).status(), v1::WRONG);
  EXPECT_EQ(imported.request.cases(4).reason(), "3 wrong elements, says the tool");
  EXPECT_EQ(imported.request.cases(5).status(), v1::PASSED);
}

TEST(NcclTestsText, MalformedRowsNameFileAndLine) {
  EXPECT_EQ(Error("nccl-tests", With("  2048  512  float")),
            "f.txt: line 21: 3 columns, not 13 or 21");
  EXPECT_EQ(Error("nccl-tests", With("2048 512 quad sum -1 25 0 0 0 24 0 0 0")),
            "f.txt: line 21: benchmark collective has no type \"quad\"");
  EXPECT_EQ(Error("nccl-tests", With("2048 512 float sum -1 fast 0 0 0 24 0 0 0")),
            "f.txt: line 21: time \"fast\" is no number");
  EXPECT_EQ(Error("nccl-tests", With("2048 512 float sum -1 25 0 0 many 24 0 0 0")),
            "f.txt: line 21: #wrong \"many\" is no number");
  EXPECT_EQ(Error("nccl-tests", With("2048 512 float sum x 25 0 0 0 24 0 0 0")),
            "f.txt: line 21: size \"2048\" or root \"x\" is no number");
  EXPECT_EQ(Error("nccl-tests", With("2048 512 float sum -1 0.0 0 0 0 24 0 0 0")),
            "f.txt: line 21: a time of 0 us is no result");
  EXPECT_EQ(Error("nccl-tests", With("2047 512 float sum -1 1.0 0 0 0 24 0 0 0")),
            "f.txt: line 21: --size 2047 is no whole number of elements of 4 B");
  EXPECT_EQ(
      Error("nccl-tests", "#  Rank zero\n"),
      "f.txt: line 1: a line that begins with \"#  Rank \" names the rank, its group, process "
      "and host");
}

TEST(NcclTestsText, WithTimesOfIterationsAndTimestampsIsRead) {
  const Imported imported = Read(
      "nccl-tests", With("2048 512 float sum -1 25 0.08 0.12 0 20 30 29 5 24 0.08 0.12 0 20 30 "
                         "29 5 2026-11-29 22:04:33"));
  EXPECT_EQ(imported.request.cases_size(), 6);
}

TEST(NcclTestsText, WhatRepeatsOrHoldsNothingIsLeftOutWithANote) {
  const Imported imported = Read(
      "nccl-tests", With("8 2 float sum -1 25 0 0 0 24 0 0 0\n0 0 float sum -1 9 0 0 0 8 0 0 0"));
  EXPECT_EQ(imported.request.cases_size(), 4);
  ASSERT_EQ(imported.notes.size(), 4u);
  EXPECT_EQ(imported.notes[0], "line 21: left out: the same case came before");
  EXPECT_EQ(imported.notes[2].rfind("line 22: left out: --size 0: ", 0), 0u) << imported.notes[2];
}

TEST(NcclTestsText, OfAnOldReleaseNeedsHints) {
  const std::string old =
      "#                out-of-place   in-place\n# size count type redop root time algbw busbw\n"
      "1048576 32768 float none -1 100 10 7.5 0 90 11 8 0\n";
  EXPECT_EQ(Error("auto", old),
            "f.txt: line 3: the text does not say which operation it is of; give --op, as --op "
            "all_reduce");
  EXPECT_EQ(Error("auto", old, {0, "all_gather"}),
            "f.txt: line 3: the text names 0 ranks before its rows; give --ranks N, 2 at least");
  const Imported imported = Read("auto", old, {8, "all_gather"});
  ASSERT_EQ(imported.request.cases_size(), 2);
  EXPECT_EQ(Metric(imported.request.cases(0), "bytes_per_rank").p50(), 131072);
  EXPECT_NE(Error("auto", old, {8, "allgather"}).find("did you mean \"all_gather\""),
            std::string::npos);
}

TEST(NcclTestsText, OfAnUnknownProgramIsAnError) {
  EXPECT_EQ(Error("nccl-tests", "# Collective test starting: hypercube_perf\n"),
            "f.txt: line 1: \"hypercube_perf\" measures nothing that benchmark collective has an "
            "operation for");
  EXPECT_EQ(Error("nccl-tests", "hello\n"), "f.txt: no result row was found");
}

constexpr absl::string_view kNcclJson = R"({"version":3,"start_time":"2026-11-29 22:00:00",
"args":["/opt/nccl-tests/build/reduce_perf_mpi","-b","8"],"env":["TOKEN=secret"],
"nccl_version":22906,"config":{"iterations":20,"devices":[
{"rank":0,"group":0,"pid":1,"hostname":"hostA","device":0},
{"rank":1,"group":0,"pid":2,"hostname":"hostB","device":0}]},
"results":[{"size":1024,"count":256,"type":"float","redop":"max","root":"     1",
"out_of_place":{"time":25.0,"alg_bw":0.04,"bus_bw":0.04,"nwrong":0.0},
"out_of_place_per_iter":{"times_us":[20.0,21.0,22.0,23.0,24.0,25.0,40.0]},
"in_place":{"time":24.0,"alg_bw":0.04,"bus_bw":0.04,"nwrong":null}}],
"out_of_bounds":{"count":0,"okay":"true"}})";

TEST(NcclTestsJson, IsReadWithItsIterations) {
  const Imported imported = Read("auto", kNcclJson);
  const v1::ImportRequest& request = imported.request;
  EXPECT_EQ(request.format(), "nccl-tests-json");
  EXPECT_EQ(request.ranks(), 2);
  EXPECT_EQ(request.nodes_size(), 2);
  ASSERT_EQ(request.cases_size(), 2);
  const v1::ImportedCase& first = request.cases(0);
  EXPECT_EQ(first.params().at("op"), "reduce");
  EXPECT_EQ(first.params().at("redop"), "max");
  EXPECT_EQ(first.params().at("root"), "1");
  const v1::Summary& time = Metric(first, "time");
  EXPECT_EQ(time.n(), 7);
  EXPECT_DOUBLE_EQ(time.p50(), 23e-6);
  EXPECT_DOUBLE_EQ(time.max(), 40e-6);
  EXPECT_LT(time.ci95_low(), time.p50());
  EXPECT_EQ(first.info().count("statistic"), 0u);
  EXPECT_EQ(request.cases(1).info().at("statistic"), "mean of 20 iterations");
  // The file holds the user's whole environment; none of it goes on.
  EXPECT_EQ(request.SerializeAsString().find("secret"), std::string::npos);
}

TEST(NcclTestsJson, SaysWhereItIsWrong) {
  EXPECT_EQ(Error("nccl-tests-json", "{\n\n\"a\": }"), "f.txt: line 3: it is no JSON");
  EXPECT_EQ(Error("nccl-tests-json", "{}"), "f.txt: it has no list \"results\"");
  const std::string start =
      R"({"args":["all_reduce_perf"],"config":{"devices":[{"rank":0},{"rank":1}]},"results":[)";
  EXPECT_EQ(Error("nccl-tests-json", start + "7]}"), "f.txt: results[0].size is no number");
  EXPECT_EQ(Error("nccl-tests-json",
                  start + R"({"size":8,"type":"float","redop":"sum","out_of_place":{}}]})"),
            "f.txt: results[0].out_of_place.cpu_time is no number");
  EXPECT_EQ(Error("nccl-tests-json", R"({"args":["all_reduce_perf"],"results":[]})"),
            "f.txt: config.devices names 0 ranks; give --ranks N, 2 at least");
}

constexpr absl::string_view kOsuText = R"(
# OSU MPI All-to-All Personalized Exchange Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
1                       7.02              6.50              7.60        1000
1048576               950.25            940.00            960.00         100

# OSU MPI Barrier Latency Test v7.4
# Avg Latency(us)
             1.41
)";

TEST(OsuText, SizesAreBytesPerRank) {
  const Imported imported = Read("auto", kOsuText, {8, ""});
  const v1::ImportRequest& request = imported.request;
  EXPECT_EQ(request.format(), "osu");
  EXPECT_EQ(request.backend(), "cpu+mpi");
  EXPECT_EQ(request.ranks(), 8);
  ASSERT_EQ(request.cases_size(), 3);
  EXPECT_EQ(request.cases(0).params().at("op"), "all_to_all");
  EXPECT_EQ(request.cases(0).params().at("size"), "8");
  EXPECT_EQ(request.cases(0).params().at("dtype"), "i8");
  EXPECT_EQ(request.cases(0).info().at("statistic"),
            "mean over the ranks of the mean of 1000 iterations");
  EXPECT_EQ(Metric(request.cases(1), "bytes_per_rank").p50(), 1048576);
  EXPECT_DOUBLE_EQ(Metric(request.cases(1), "algbw").p50(), 8 * 1048576.0 / 950.25e-6);
  EXPECT_EQ(request.cases(2).params().at("op"), "barrier");
  EXPECT_DOUBLE_EQ(Metric(request.cases(2), "time").p50(), 1.41e-6);
  EXPECT_EQ(request.cases(2).measurements_size(), 1);
}

TEST(OsuText, TheSizeOfReduceScatterIsTheWholeInput) {
  const Imported imported =
      Read("osu", "# OSU MPI Reduce_scatter Latency Test v5.6\n4 1.5\n64 2.5\n", {8, ""});
  ASSERT_EQ(imported.request.cases_size(), 2);
  EXPECT_EQ(imported.request.cases(0).params().at("op"), "reduce_scatter_v");
  EXPECT_EQ(imported.request.cases(1).params().at("op"), "reduce_scatter");
  EXPECT_EQ(imported.request.cases(1).params().at("size"), "64");
  EXPECT_EQ(Metric(imported.request.cases(1), "bytes_per_rank").p50(), 8);
}

TEST(OsuText, SaysWhatIsMissingOrWrong) {
  EXPECT_EQ(Error("osu", kOsuText),
            "f.txt: OSU's text does not say how many ranks ran; give --ranks N, 2 at least");
  EXPECT_EQ(
      Error("osu", "# OSU MPI Bandwidth Test v7.4\n", {2, ""}),
      "f.txt: line 1: \"OSU MPI Bandwidth Test v7.4\" is none of the blocking collectives that "
      "can be imported");
  EXPECT_EQ(Error("osu", "# OSU MPI Allreduce Latency Test v7.4\n\n4 quick\n", {2, ""}),
            "f.txt: line 3: a row is a size in bytes and a time in us");
  EXPECT_EQ(Error("osu", "4 1.5\n", {2, ""}),
            "f.txt: line 1: no line \"# OSU ...\" came before; give --op, as --op all_reduce");
}

TEST(OsuText, AFailedValidationIsWrong) {
  const Imported imported = Read("osu",
                                 "# OSU MPI Allreduce Latency Test v7.4\n# Datatype: MPI_INT.\n"
                                 "4 1.5 Fail\n8 1.5 Pass\n",
                                 {2, ""});
  EXPECT_EQ(imported.request.cases(0).status(), v1::WRONG);
  EXPECT_EQ(imported.request.cases(1).status(), v1::PASSED);
}

TEST(Import, OfWhatLooksLikeNothingNamesTheFormats) {
  EXPECT_EQ(Error("auto", "hello"),
            "f.txt: it looks like none of nccl-tests, nccl-tests-json, osu; name it with --format");
  EXPECT_EQ(Error("auto", ""),
            "f.txt: it looks like none of nccl-tests, nccl-tests-json, osu; name it with --format");
}

TEST(Import, EachTextIsRecognisedByOneImporter) {
  for (const absl::string_view text : {kNcclText, kNcclJson, kOsuText}) {
    int recognised = 0;
    for (const Importer& importer : AllImporters()) recognised += importer.recognises(text) ? 1 : 0;
    EXPECT_EQ(recognised, 1) << text.substr(0, 60);
  }
}

TEST(Import, NothingBreaksOnTruncatedText) {
  for (const absl::string_view text : {kNcclText, kNcclJson, kOsuText}) {
    for (const Importer& importer : AllImporters()) {
      for (std::size_t length = 0; length < text.size(); length += 7) {
        const absl::StatusOr<Imported> imported =
            importer.read(text.substr(0, length), {4, "all_reduce"});
        if (imported.ok()) {
          EXPECT_GT(imported->request.cases_size(), 0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace param
