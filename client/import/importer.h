#pragma once
// Results that other tools wrote, as requests to import them. One file per format and one row in
// the table; an importer is a pure function from text to cases.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "param/v1/result.pb.h"

namespace param {

// What the text does not say and the user may.
struct ImportHints {
  int ranks = 0;          // 0: as the text says
  std::string operation;  // "all_reduce"; "": as the text says
};

struct Imported {
  // Without principal, request id and name.
  v1::ImportRequest request;
  std::vector<std::string> notes;  // what was left out and why, "line 12: ..."
};

struct Importer {
  absl::string_view format;   // "nccl-tests"
  absl::string_view summary;  // what it reads
  // Whether the text looks like this format; at most one importer says so.
  bool (*recognises)(absl::string_view text);
  // INVALID_ARGUMENT; errors in the text begin with "line N: ".
  absl::StatusOr<Imported> (*read)(absl::string_view text, const ImportHints& hints);
};

// In the order of help.
const std::vector<Importer>& AllImporters();

// "nccl-tests", ..., without "auto".
std::vector<std::string> ImportFormats();

// Reads `text` as `format`, or as what it looks like when that is "auto". Errors are
// INVALID_ARGUMENT and begin with `file`.
absl::StatusOr<Imported> ImportResults(absl::string_view format, absl::string_view file,
                                       absl::string_view text, const ImportHints& hints);

}  // namespace param
