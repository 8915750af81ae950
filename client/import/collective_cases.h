#pragma once
// From what the formats have in common to cases of benchmark `collective`.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/import/importer.h"
#include "proto/catalog/collective_math.h"

namespace param {

// One time that the tool printed.
struct MeasuredCase {
  std::string where;  // "line 12": for errors and notes
  CollectiveOp op = CollectiveOp::kAllReduce;
  std::string dtype, redop;  // our names; redop "" where there is none
  std::int64_t root = 0;
  bool in_place = false;
  std::int64_t size = 0;  // S, as in benchmark `collective`
  double time_s = 0;      // the one number that the tool gives
  std::string statistic;  // what that number is: "mean of 20 iterations"
  // All iterations, where the tool gives them: the summary is theirs then.
  std::vector<double> times_s;
  std::int64_t wrong = 0;  // elements
};

// Collects the cases of one text. Not thread safe.
class CollectiveCases {
 public:
  // `ranks` > 1. Metrics are computed from the time and the size by the catalogue's formulas: what
  // the tools print is rounded to two decimals, which is nothing at small sizes.
  // A case that is there already and one too small to have a size are left out with a note.
  absl::Status Add(const MeasuredCase& measured, int ranks);

  void Note(std::string note) { notes_.push_back(std::move(note)); }
  bool empty() const { return cases_.empty(); }

  // INVALID_ARGUMENT when there is no case.
  absl::StatusOr<Imported> Finish(int ranks, const std::vector<std::string>& nodes,
                                  absl::string_view backend,
                                  const std::map<std::string, std::string>& environment) &&;

 private:
  std::vector<v1::ImportedCase> cases_;
  std::set<std::string> seen_;
  std::vector<std::string> notes_;
};

// Of the program's name ("all_reduce_perf", with or without a suffix like "_mpi"); INVALID_ARGUMENT
// for one that the benchmark has no operation for.
absl::StatusOr<CollectiveOp> NcclTestsOperation(absl::string_view program);
// "float" -> "f32"; INVALID_ARGUMENT for a type that the benchmark does not have.
absl::StatusOr<std::string> NcclTestsType(absl::string_view type);

// The operation of the hints, if any; INVALID_ARGUMENT with "did you mean".
absl::StatusOr<std::optional<CollectiveOp>> HintedOperation(const ImportHints& hints);

}  // namespace param
