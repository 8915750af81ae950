#pragma once
// A command is a row of a table: path, flags, examples, function. Parsing, help, completion and the
// reference page all follow from it.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cmd/io.h"
#include "client/output/table.h"
#include "client/rpc/connection.h"
#include "client/rpc/exit_code.h"
#include "proto/catalog/spec.h"

namespace param {

struct Flag {
  std::string name;   // "min-time", without dashes
  std::string value;  // "DURATION"; "" for a switch
  std::string help;
  std::vector<std::string> choices = {};
  bool repeat = false;     // may be given more than once
  bool negatable = false;  // a switch that also takes --no-NAME
  char letter = '\0';      // -o
};

// A parsed command line. Flags by name without dashes.
class Arguments {
 public:
  bool Has(absl::string_view flag) const { return flags_.count(flag) > 0; }
  // A switch that was given and not switched off again.
  bool IsOn(absl::string_view flag) const { return Text(flag) == "true"; }
  std::string Text(absl::string_view flag, absl::string_view otherwise = "") const;
  std::vector<std::string> All(absl::string_view flag) const;
  // INVALID_ARGUMENT names the flag and the range.
  absl::StatusOr<std::int64_t> Int(absl::string_view flag, std::int64_t otherwise, std::int64_t min,
                                   std::int64_t max) const;
  absl::StatusOr<absl::Duration> Duration(absl::string_view flag, absl::Duration otherwise) const;
  // KEY=VALUE values of a repeated flag.
  absl::StatusOr<std::map<std::string, std::string>> Pairs(absl::string_view flag) const;

  const std::vector<std::string>& words() const { return words_; }

  void AddFlag(const std::string& flag, std::vector<std::string> values) {
    flags_[flag] = std::move(values);
  }
  void AddWord(std::string word) { words_.push_back(std::move(word)); }

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> flags_;
  std::vector<std::string> words_;
};

struct Command;

// What a command's function works with.
struct Context {
  Io& io;
  const Command& command;
  Arguments args;
  Format format = Format::kText;
  bool quiet = false;
  bool color = false;                        // of standard output
  const BenchmarkSpec* benchmark = nullptr;  // of submit
  std::unique_ptr<Connection> connection =
      nullptr;  // to the resolved address; nothing was sent yet

  TextOptions text_options() const { return {format == Format::kWide, color, true, ""}; }
  bool is_text() const { return format == Format::kText || format == Format::kWide; }
};

struct Command {
  std::vector<std::string> path;  // {"job", "list"}
  std::string summary;            // a verb first, no full stop
  std::string arguments;          // "JOB", "NODE KEY=VALUE..."
  std::size_t min_words = 0, max_words = 0;
  std::string description;            // sentences, may be empty
  std::vector<std::string> examples;  // whole lines
  std::vector<Flag> flags;
  ExitCode (*run)(Context& context);
};

// The flags that every command takes.
const std::vector<Flag>& GlobalFlags();

// Flags of `submit BENCH` for one benchmark: its parameters and the measuring group.
std::vector<Flag> BenchmarkFlags(const BenchmarkSpec& bench);

// All commands in the order of help.
const std::vector<Command>& AllCommands();

// Per noun; AllCommands joins them.
std::vector<Command> SubmitCommands();
std::vector<Command> FleetCommands();
std::vector<Command> JobCommands();
std::vector<Command> NodeCommands();
std::vector<Command> BenchCommands();
std::vector<Command> ResultCommands();
std::vector<Command> ReportCommands();
std::vector<Command> AdminCommands();

// Prints "error: ..." as the last line of standard error and gives the exit code.
ExitCode Fail(Context& context, const absl::Status& status);

// Advice for a person, on standard error; not with -q.
void Hint(const Context& context, absl::string_view line);

// Renders a table in any format; `json_key` is the key of its rows in -o json.
void PrintTable(const Context& context, const Table& table, absl::string_view json_key);

}  // namespace param
