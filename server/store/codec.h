#pragma once
// How the store writes what has no column of its own: JSON for small structures, canonical text
// for labels, compressed arrays for samples. All of them read back exactly; what cannot be read is
// DATA_LOSS and says what it was. Strings that are not UTF-8 are kept lossily in JSON.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/core/job.h"

namespace param {

// "k=v,k=v" sorted by key, "" for none; , = and % of keys and values as %XX.
std::string LabelsText(const line::Labels& labels);
absl::StatusOr<line::Labels> ParseLabels(absl::string_view text);

std::string SpecJson(const JobSpec& spec);
absl::StatusOr<JobSpec> ParseSpec(absl::string_view json);

// "{}" for none.
std::string FailureJson(const Failure& failure);
absl::StatusOr<Failure> ParseFailure(absl::string_view json);

std::string RanksJson(const std::vector<RankPlace>& ranks);
absl::StatusOr<std::vector<RankPlace>> ParseRanks(absl::string_view json);

std::string NamesJson(const std::vector<std::string>& names);
absl::StatusOr<std::vector<std::string>> ParseNames(absl::string_view json);

std::string MapJson(const std::map<std::string, std::string>& map);
absl::StatusOr<std::map<std::string, std::string>> ParseMap(absl::string_view json);

// Little-endian doubles, zstd-compressed; the same bits come back, those of NaNs too.
absl::StatusOr<std::string> PackDoubles(const std::vector<double>& values);
// `count` is what the row says it holds.
absl::StatusOr<std::vector<double>> UnpackDoubles(absl::string_view packed, std::int64_t count);

}  // namespace param
