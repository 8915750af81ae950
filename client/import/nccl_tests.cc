// The text of nccl-tests' *_perf programs (2.x): device lines, then rows of five keys and two
// placements of four columns each (eight with -I). "N/A" in place of #wrong means "not checked".

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/import/collective_cases.h"
#include "client/import/formats.h"
#include "proto/base/status.h"

namespace param {
namespace {

using Words = std::vector<absl::string_view>;

constexpr absl::string_view kStarting = "# Collective test starting:";
constexpr absl::string_view kOptions = "# nThread ";
constexpr absl::string_view kDevice = "#  Rank ";
constexpr std::size_t kKeys = 5;      // size count type redop root
constexpr std::size_t kHalf = 4;      // time algbw busbw #wrong
constexpr std::size_t kLongHalf = 8;  // with -I: i_min i_max i_p99 i_cv% as well

// A row begins with its size and count; any other line without '#' is noise of the launcher or of
// NCCL's own log.
bool IsRow(const Words& words) {
  std::int64_t number = 0;
  return words.size() >= 2 && absl::SimpleAtoi(words[0], &number) &&
         absl::SimpleAtoi(words[1], &number);
}

bool Recognises(absl::string_view text) {
  return absl::StrContains(text, kStarting) || absl::StrContains(text, kOptions) ||
         absl::StrContains(text, kDevice) ||
         (absl::StrContains(text, "out-of-place") && absl::StrContains(text, "busbw"));
}

class Reader {
 public:
  Reader(std::optional<CollectiveOp> hinted, int hinted_ranks)
      : hinted_(hinted), hinted_ranks_(hinted_ranks) {}

  // `where`: "line 12".
  absl::Status Line(absl::string_view line, const std::string& where) {
    const Words words = absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty()) return absl::OkStatus();
    if (absl::StartsWith(line, "#")) return Comment(line, words, where);
    return IsRow(words) ? Row(words, where) : absl::OkStatus();
  }

  absl::StatusOr<Imported> Finish() && {
    return std::move(cases_).Finish(Ranks(), hosts_, "cuda+nccl", environment_);
  }

 private:
  int Ranks() const { return hinted_ranks_ > 0 ? hinted_ranks_ : static_cast<int>(ranks_.size()); }

  absl::Status Comment(absl::string_view line, const Words& words, const std::string& where) {
    if (absl::StartsWith(line, kStarting) && words.size() >= 5) {
      PARAM_ASSIGN_OR_RETURN(program_, NcclTestsOperation(words[4]), where);
    } else if (absl::StartsWith(line, kDevice)) {
      return Device(words, where);
    } else if (absl::StartsWith(line, "# nccl-tests version ")) {
      environment_["nccl_tests"] = std::string(absl::StripAsciiWhitespace(line.substr(2)));
    } else if (absl::StartsWith(line, kOptions)) {
      environment_["nccl_tests.options"] = std::string(absl::StripAsciiWhitespace(line.substr(2)));
      for (std::size_t i = 2; i + 1 < words.size(); ++i) {  // "warmup iters: 5 iters: 20"
        if (words[i] == "iters:" && words[i - 1] != "warmup" && words[i - 1] != "agg") {
          iterations_ = absl::StrCat(words[i + 1]);
        }
      }
    }
    return absl::OkStatus();
  }

  // "#  Rank  0 Group  0 Pid   6899 on host device  0 [0000:04:00] NVIDIA H100". Groups run alike,
  // side by side: each has as many ranks as the first.
  absl::Status Device(const Words& words, const std::string& where) {
    int rank = 0;
    if (words.size() < 9 || !absl::SimpleAtoi(words[2], &rank) || words[3] != "Group" ||
        words[7] != "on") {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": a line that begins with \"", kDevice,
                       "\" names the rank, its group, process and host"));
    }
    if (group_.empty()) group_ = std::string(words[4]);
    if (words[4] != group_) return absl::OkStatus();
    ranks_.insert(rank);
    if (std::find(hosts_.begin(), hosts_.end(), words[8]) == hosts_.end()) {
      hosts_.emplace_back(words[8]);
    }
    return absl::OkStatus();
  }

  absl::Status CheckKnown(const std::string& where) const {
    if (!hinted_.has_value() && !program_.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          where,
          ": the text does not say which operation it is of; give --op, as --op all_reduce"));
    }
    if (Ranks() < 2) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": the text names ", Ranks(),
                       " ranks before its rows; give --ranks N, 2 at least"));
    }
    return absl::OkStatus();
  }

  absl::Status Row(const Words& words, const std::string& where) {
    PARAM_RETURN_IF_ERROR(CheckKnown(where));
    // -S adds a date and a time at the end of the row.
    const std::size_t columns = words.size() - (HasTimestamp(words) ? 2 : 0);
    const std::size_t half = columns == kKeys + 2 * kLongHalf ? kLongHalf : kHalf;
    if (columns != kKeys + 2 * half) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": ", columns, " columns, not ",
                                                     kKeys + 2 * kHalf, " or ",
                                                     kKeys + 2 * kLongHalf));
    }
    MeasuredCase measured;
    measured.where = where;
    measured.op = hinted_.has_value() ? *hinted_ : *program_;
    std::int64_t root = 0;
    if (!absl::SimpleAtoi(words[0], &measured.size) || measured.size < 0 ||
        !absl::SimpleAtoi(words[4], &root)) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": size \"", words[0], "\" or root \"", words[4], "\" is no number"));
    }
    measured.root = std::max<std::int64_t>(0, root);
    PARAM_ASSIGN_OR_RETURN(measured.dtype, NcclTestsType(words[2]), where);
    if (Reduces(measured.op)) measured.redop = std::string(words[3]);
    measured.statistic = absl::StrCat("mean of ", iterations_, " iterations");
    PARAM_RETURN_IF_ERROR(Half({words.begin() + kKeys, words.begin() + kKeys + kHalf}, measured));
    measured.in_place = true;
    const auto second = words.begin() + static_cast<std::ptrdiff_t>(kKeys + half);
    return Half({second, second + kHalf}, measured);
  }

  // "2026-11-29 22:04:33"
  static bool HasTimestamp(const Words& words) {
    return words.size() > 2 && absl::StrContains(words.back(), ':') &&
           absl::StrContains(words[words.size() - 2], '-');
  }

  absl::Status Half(const Words& half, MeasuredCase measured) {
    if (half[0] == "N/A") return absl::OkStatus();
    double time_us = 0, wrong = 0;
    if (!absl::SimpleAtod(half[0], &time_us)) {
      return absl::InvalidArgumentError(
          absl::StrCat(measured.where, ": time \"", half[0], "\" is no number"));
    }
    if (half[3] != "N/A" && (!absl::SimpleAtod(half[3], &wrong) || !(wrong >= 0) || wrong > 1e18)) {
      return absl::InvalidArgumentError(
          absl::StrCat(measured.where, ": #wrong \"", half[3], "\" is no number"));
    }
    // Broadcast has one buffer here; the second placement would be the same case again.
    if (measured.in_place && !TakesInPlace(measured.op)) return absl::OkStatus();
    measured.time_s = time_us * 1e-6;
    measured.wrong = static_cast<std::int64_t>(wrong);
    return cases_.Add(measured, Ranks());
  }

  const std::optional<CollectiveOp> hinted_;
  const int hinted_ranks_;
  std::optional<CollectiveOp> program_;
  std::string group_, iterations_ = "all";
  std::set<int> ranks_;
  std::vector<std::string> hosts_;
  std::map<std::string, std::string> environment_;
  CollectiveCases cases_;
};

absl::StatusOr<Imported> Read(absl::string_view text, const ImportHints& hints) {
  PARAM_ASSIGN_OR_RETURN(const std::optional<CollectiveOp> op, HintedOperation(hints));
  Reader reader(op, hints.ranks);
  std::size_t number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    PARAM_RETURN_IF_ERROR(reader.Line(line, absl::StrCat("line ", ++number)));
  }
  return std::move(reader).Finish();
}

}  // namespace

Importer NcclTestsImporter() {
  return {"nccl-tests", "the text that the *_perf programs of nccl-tests print", Recognises, Read};
}

}  // namespace param
