// paramctl bench ...: the catalogue that this program was built with; no coordinator is needed.

#include <nlohmann/json.hpp>

#include "absl/strings/str_join.h"
#include "client/cmd/command.h"
#include "proto/catalog/derived.h"
#include "proto/convert/json.h"

namespace param {
namespace {

Table BenchmarksTable(const std::vector<const BenchmarkSpec*>& benchmarks) {
  Table table;
  table.columns = {{"id", "NAME"},
                   {"version", "VERSION", "", Align::kRight},
                   {"summary", "SUMMARY"},
                   {"sets", "SETS"}};
  for (const BenchmarkSpec* bench : benchmarks) {
    const std::string sets = absl::StrJoin(
        bench->sets, ",",
        [](std::string* out, const ProblemSet& set) { out->append(std::string(set.name)); });
    table.rows.push_back({{std::string(bench->id)},
                          {std::int64_t{bench->version}},
                          {std::string(bench->summary)},
                          {sets.empty() ? std::string("-") : sets}});
  }
  return table;
}

ExitCode RunList(Context& context) {
  if (context.format == Format::kJson || context.format == Format::kJsonl) {
    Json list = Json::array();
    for (const BenchmarkSpec* bench : AllBenchmarks()) {
      if (context.format == Format::kJsonl) context.io.out << JsonLine(BenchmarkJson(*bench));
      list.push_back(BenchmarkJson(*bench));
    }
    Json document = Json::object();
    document["benchmarks"] = std::move(list);
    if (context.format == Format::kJson) context.io.out << JsonText(document);
    return ExitCode::kOk;
  }
  PrintTable(context, BenchmarksTable(AllBenchmarks()), "benchmarks");
  return ExitCode::kOk;
}

ExitCode RunShow(Context& context) {
  const absl::StatusOr<const BenchmarkSpec*> bench = FindBenchmark(context.args.words()[0]);
  if (!bench.ok()) return Fail(context, bench.status());
  if (context.is_text()) {
    context.io.out << HelpText(**bench);
  } else if (context.format == Format::kCsv) {
    PrintTable(context, BenchmarksTable({*bench}), "benchmarks");
  } else {
    Json document = Json::object();
    document["benchmark"] = BenchmarkJson(**bench);
    context.io.out << (context.format == Format::kJson ? JsonText(document) : JsonLine(document));
  }
  return ExitCode::kOk;
}

}  // namespace

std::vector<Command> BenchCommands() {
  Command list;
  list.path = {"bench", "list"};
  list.summary = "List the benchmarks";
  list.examples = {"paramctl bench list", "paramctl bench list -o json"};
  list.run = RunList;
  Command show;
  show.path = {"bench", "show"};
  show.summary = "Show a benchmark's parameters, metrics and problem sets";
  show.arguments = "BENCH";
  show.min_words = show.max_words = 1;
  show.examples = {"paramctl bench show gemm"};
  show.run = RunShow;
  return {list, show};
}

}  // namespace param
