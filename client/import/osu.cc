// The text of the OSU micro-benchmarks' blocking collectives: a title that names the operation,
// then "size average [minimum maximum iterations]" in bytes per rank and microseconds.

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/import/collective_cases.h"
#include "client/import/formats.h"
#include "proto/base/status.h"

namespace param {
namespace {

using Words = std::vector<absl::string_view>;

constexpr absl::string_view kTitle = "# OSU ";
constexpr std::int64_t kFloatBytes = 4;  // of the elements that reductions take

bool Recognises(absl::string_view text) { return absl::StrContains(text, kTitle); }

// By what the title says between "MPI" or "XCCL" and "Latency Test".
absl::StatusOr<CollectiveOp> OperationOf(absl::string_view title, const std::string& where) {
  const std::pair<absl::string_view, CollectiveOp> names[] = {
      {" Allreduce Latency", CollectiveOp::kAllReduce},
      {" Allgatherv Latency", CollectiveOp::kAllGatherV},
      {" Allgather Latency", CollectiveOp::kAllGather},
      {" Reduce_scatter Latency", CollectiveOp::kReduceScatter},
      {" All-to-Allv Personalized Exchange Latency", CollectiveOp::kAllToAllV},
      {" All-to-All Personalized Exchange Latency", CollectiveOp::kAllToAll},
      {" Broadcast Latency", CollectiveOp::kBroadcast},
      {" Reduce Latency", CollectiveOp::kReduce},
      {" Gather Latency", CollectiveOp::kGather},
      {" Scatter Latency", CollectiveOp::kScatter},
      {" Barrier Latency", CollectiveOp::kBarrier}};
  for (const auto& [name, op] : names) {
    if (absl::StrContains(title, name) && !absl::StrContains(title, "Non-blocking") &&
        !absl::StrContains(title, "Persistent")) {
      return op;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat(where, ": \"", absl::StripAsciiWhitespace(title.substr(2)),
                   "\" is none of the blocking collectives that can be imported"));
}

absl::StatusOr<std::string> TypeOf(absl::string_view name, const std::string& where) {
  const std::pair<absl::string_view, const char*> types[] = {
      {"MPI_CHAR", "i8"},   {"MPI_UNSIGNED_CHAR", "u8"}, {"MPI_BYTE", "u8"},
      {"MPI_INT", "i32"},   {"MPI_INT64_T", "i64"},      {"MPI_LONG", "i64"},
      {"MPI_FLOAT", "f32"}, {"MPI_DOUBLE", "f64"}};
  for (const auto& [mpi, ours] : types) {
    if (name == mpi) return std::string(ours);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(where, ": benchmark collective has no type \"", name, "\""));
}

// OSU's size as that of benchmark `collective`: bytes per rank, where that is not the whole
// already.
std::int64_t SizeOf(CollectiveOp op, std::int64_t size, int ranks) {
  switch (op) {
    case CollectiveOp::kAllReduce:
    case CollectiveOp::kReduce:
    case CollectiveOp::kBroadcast:
    case CollectiveOp::kReduceScatter:  // the whole input (osu_reduce_scatter.c)
      return size;
    default:
      return size * ranks;
  }
}

class Reader {
 public:
  Reader(std::optional<CollectiveOp> hinted, int ranks) : hinted_(hinted), ranks_(ranks) {}

  absl::Status Line(absl::string_view line, const std::string& where) {
    const Words words = absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty()) return absl::OkStatus();
    if (absl::StartsWith(line, kTitle)) {
      PARAM_ASSIGN_OR_RETURN(op_, OperationOf(line, where));
      // Releases before 7 have no line for the type; they reduce floats and move characters.
      dtype_ = Reduces(*op_) ? "f32" : "i8";
      environment_["osu"] = std::string(words.back());
      return absl::OkStatus();
    }
    if (words[0] == "#") {
      if (words.size() < 3 || words[1] != "Datatype:") return absl::OkStatus();
      PARAM_ASSIGN_OR_RETURN(dtype_, TypeOf(absl::StripSuffix(words[2], "."), where));
      return absl::OkStatus();
    }
    double number = 0;
    if (!absl::SimpleAtod(words[0], &number)) return absl::OkStatus();  // the launcher's noise
    return Row(words, where);
  }

  absl::StatusOr<Imported> Finish() && {
    return std::move(cases_).Finish(ranks_, {}, "cpu+mpi", environment_);
  }

 private:
  absl::Status Row(const Words& words, const std::string& where) {
    if (!hinted_.has_value() && !op_.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          where, ": no line \"", kTitle, "...\" came before; give --op, as --op all_reduce"));
    }
    MeasuredCase measured;
    measured.where = where;
    measured.op = hinted_.has_value() ? *hinted_ : *op_;
    measured.dtype = dtype_;
    if (Reduces(measured.op)) measured.redop = "sum";
    const std::size_t keys = measured.op == CollectiveOp::kBarrier ? 0 : 1;
    double time_us = 0;
    std::int64_t bytes = 0;
    if (words.size() <= keys || (keys == 1 && !absl::SimpleAtoi(words[0], &bytes)) || bytes < 0 ||
        bytes > (std::int64_t{1} << 40) || !absl::SimpleAtod(words[keys], &time_us)) {
      return absl::InvalidArgumentError(absl::StrCat(
          where, ": a row is ", keys == 1 ? "a size in bytes and " : "", "a time in us"));
    }
    measured.size = SizeOf(measured.op, bytes, ranks_);
    // What does not divide it deals out one element more to the first ranks.
    if (measured.op == CollectiveOp::kReduceScatter && bytes % (kFloatBytes * ranks_) != 0) {
      measured.op = CollectiveOp::kReduceScatterV;
    }
    measured.time_s = time_us * 1e-6;
    // With -f: minimum, maximum, iterations.
    measured.statistic =
        words.size() >= keys + 4
            ? absl::StrCat("mean over the ranks of the mean of ", words[keys + 3], " iterations")
            : "mean over the ranks of the mean of all iterations";
    if (words.back() == "Fail") measured.wrong = 1;  // with -c
    return cases_.Add(measured, ranks_);
  }

  const std::optional<CollectiveOp> hinted_;
  const int ranks_;
  std::optional<CollectiveOp> op_;
  std::string dtype_ = "i8";
  std::map<std::string, std::string> environment_;
  CollectiveCases cases_;
};

absl::StatusOr<Imported> Read(absl::string_view text, const ImportHints& hints) {
  if (hints.ranks < 2) {
    return absl::InvalidArgumentError(
        "OSU's text does not say how many ranks ran; give --ranks N, 2 at least");
  }
  PARAM_ASSIGN_OR_RETURN(const std::optional<CollectiveOp> op, HintedOperation(hints));
  Reader reader(op, hints.ranks);
  std::size_t number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    PARAM_RETURN_IF_ERROR(reader.Line(line, absl::StrCat("line ", ++number)));
  }
  return std::move(reader).Finish();
}

}  // namespace

Importer OsuImporter() {
  return {"osu", "the text of the OSU micro-benchmarks' blocking collectives", Recognises, Read};
}

}  // namespace param
