#pragma once
// What is installed: DIR/NAME/manifest.json, read without loading or executing anything.
//
//   {"name": "cpu", "abi_major": 1, "abi_minor": 0, "tables": ["device"], "benchmarks": ["*"],
//    "object": "cpu.so", "libraries": ["libdnnl.so.2"], "memory": ["host"], "streams": ["cpu"],
//    "summary": "..."}
//
// Optional: "preference" (0), "rank_per_device" (false) and "launcher" ("direct").
// "benchmarks" are those it can serve, "*" for all; "libraries" are those it wants, by soname;
// "memory" and "streams" are the kinds that a comm table takes. Unknown keys are left for later
// versions. Installed, loadable and usable are three states: this is the first, see probe.h.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace param {

struct Manifest {
  std::string name;  // [a-z][a-z0-9_]*, equal to the folder's name
  int abi_major = 0;
  int abi_minor = 0;
  std::vector<std::string> tables;  // "device", "comm", "native"; one at least
  std::vector<std::string> benchmarks;
  std::string object;  // a file name beside the manifest
  std::vector<std::string> libraries;
  std::vector<std::string> memory;   // "host", "pinned", "device", "symmetric"
  std::vector<std::string> streams;  // "cpu", "cuda", ...
  std::string summary;
  int preference = 0;            // "auto" takes the highest usable; 0: only when it is named
  bool rank_per_device = false;  // one rank per device unless asked otherwise
  // What starts ranks that use its comm table: "direct" (the agent) or "mpirun".
  std::string launcher = "direct";
  std::string object_path;  // folder + object

  bool HasTable(absl::string_view table) const;
  // Lists "*" or this benchmark.
  bool Serves(absl::string_view benchmark) const;
};

// A folder that looks like a backend and is none.
struct ManifestProblem {
  std::string path;    // of the manifest
  std::string reason;  // "name: must be a string"
};

struct InstalledBackends {
  std::vector<Manifest> backends;         // by name
  std::vector<ManifestProblem> problems;  // by path
  // Null when there is none of that name.
  const Manifest* Find(absl::string_view name) const;
};

// From the text of a manifest in folder `folder`. INVALID_ARGUMENT names the key that is wrong.
absl::StatusOr<Manifest> ParseManifest(absl::string_view text, absl::string_view folder);

// Reads FOLDER/*/manifest.json of each folder in turn. A folder that does not exist holds nothing;
// a second backend of the same name is a problem. Folders without a manifest are no backends.
InstalledBackends FindBackends(absl::Span<const std::string> folders);

}  // namespace param
