#pragma once
// Help: examples first, exit codes last. The reference page client/docs/cli.md is made of the same.

#include <string>
#include <vector>

#include "client/cmd/command.h"

namespace param {

// Of the program, of a noun, or of a command; `bench` adds a benchmark's own flags to submit.
std::string ProgramHelp();
std::string NounHelp(const std::vector<std::string>& path);
std::string CommandHelp(const Command& command, const BenchmarkSpec* bench);

// client/docs/cli.md.
std::string MarkdownReference();

// Shell completion for bash, zsh or fish. INVALID_ARGUMENT for another shell.
absl::StatusOr<std::string> CompletionScript(absl::string_view shell);

}  // namespace param
