#include "client/output/table.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "proto/base/text.h"
#include "proto/convert/json.h"

namespace param {
namespace {

constexpr const char* kNothing = "-";

std::string NumberText(const Column& column, double value) {
  if (!std::isfinite(value)) return kNothing;
  switch (column.scale) {
    case Scale::kSi:
      return FormatSi(value, column.unit);
    case Scale::kBytes:
      return FormatBytes(static_cast<std::int64_t>(value));
    case Scale::kPercent:
      return absl::StrFormat("%.1f %%", value * 100);
    case Scale::kChange:
      return absl::StrFormat("%+.1f %%", value * 100);
    case Scale::kPlain:
      break;
  }
  return FormatDouble(value);
}

// What a program reads: all digits, base units.
std::string PlainText(const Cell& cell) {
  if (const auto* integer = std::get_if<std::int64_t>(&cell.value)) return absl::StrCat(*integer);
  if (const auto* number = std::get_if<double>(&cell.value)) {
    return std::isfinite(*number) ? FormatDouble(*number) : "";
  }
  if (const auto* flag = std::get_if<bool>(&cell.value)) return *flag ? "true" : "false";
  if (const auto* text = std::get_if<std::string>(&cell.value)) return *text;
  return "";
}

std::string CsvField(absl::string_view text) {
  if (text.find_first_of(",\"\r\n") == absl::string_view::npos) return std::string(text);
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

Json RowJson(const Table& table, const std::vector<Cell>& row) {
  Json out = Json::object();
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    Json& field = out[table.columns[i].key];
    const Cell::Value& value = row[i].value;
    if (const auto* integer = std::get_if<std::int64_t>(&value)) field = *integer;
    if (const auto* number = std::get_if<double>(&value)) {
      field = std::isfinite(*number) ? Json(*number) : Json(nullptr);
    }
    if (const auto* flag = std::get_if<bool>(&value)) field = *flag;
    if (const auto* text = std::get_if<std::string>(&value)) field = *text;
  }
  return out;
}

// One line of text; what is right of the last cell is not padded.
std::string Line(const std::vector<std::string>& cells, const std::vector<Style>& styles,
                 const std::vector<std::size_t>& widths, const std::vector<Align>& aligns,
                 const TextOptions& options) {
  std::string line = options.indent;
  std::size_t last = cells.size();
  while (last > 0 && cells[last - 1].empty()) --last;
  for (std::size_t i = 0; i < last; ++i) {
    const std::string padding(widths[i] - std::min(widths[i], DisplayWidth(cells[i])), ' ');
    const std::string painted = Paint(cells[i], styles[i], options.color);
    const bool right = aligns[i] == Align::kRight;
    if (i > 0) absl::StrAppend(&line, "  ");
    absl::StrAppend(&line, right ? padding : "", painted, !right && i + 1 < last ? padding : "");
  }
  return absl::StrCat(line, "\n");
}

}  // namespace

std::string CellText(const Column& column, const Cell& cell) {
  if (const auto* integer = std::get_if<std::int64_t>(&cell.value)) {
    return column.scale == Scale::kPlain ? absl::StrCat(*integer)
                                         : NumberText(column, static_cast<double>(*integer));
  }
  if (const auto* number = std::get_if<double>(&cell.value)) return NumberText(column, *number);
  if (const auto* flag = std::get_if<bool>(&cell.value)) return *flag ? "yes" : "no";
  if (const auto* text = std::get_if<std::string>(&cell.value)) return SafeText(*text);
  return kNothing;
}

void RenderText(const Table& table, const TextOptions& options, std::ostream& out) {
  std::vector<std::size_t> shown;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (options.wide || !table.columns[i].wide_only) shown.push_back(i);
  }
  std::vector<std::string> titles;
  std::vector<std::size_t> widths;
  std::vector<Align> aligns;
  for (const std::size_t i : shown) {
    titles.push_back(table.columns[i].title);
    widths.push_back(options.header ? DisplayWidth(table.columns[i].title) : 0);
    aligns.push_back(table.columns[i].align);
  }
  std::vector<std::vector<std::string>> texts;
  for (const std::vector<Cell>& row : table.rows) {
    std::vector<std::string>& line = texts.emplace_back();
    for (std::size_t i = 0; i < shown.size(); ++i) {
      line.push_back(CellText(table.columns[shown[i]], row[shown[i]]));
      widths[i] = std::max(widths[i], DisplayWidth(line.back()));
    }
  }
  if (options.header) {
    const std::vector<Style> bold(shown.size(), Style::kBold);
    out << Line(titles, bold, widths, aligns, options);
  }
  for (std::size_t r = 0; r < texts.size(); ++r) {
    std::vector<Style> styles;
    for (const std::size_t i : shown) styles.push_back(table.rows[r][i].style);
    out << Line(texts[r], styles, widths, aligns, options);
  }
}

void RenderCsv(const Table& table, std::ostream& out, bool header) {
  std::string line;
  for (std::size_t i = 0; header && i < table.columns.size(); ++i) {
    const Column& column = table.columns[i];
    const bool unitless = column.unit.empty() || column.unit == "1";
    const std::string name =
        unitless ? column.key : absl::StrCat(column.key, " (", column.unit, ")");
    absl::StrAppend(&line, i > 0 ? "," : "", CsvField(name));
  }
  if (header) out << line << "\n";
  for (const std::vector<Cell>& row : table.rows) {
    line.clear();
    for (std::size_t i = 0; i < row.size(); ++i) {
      absl::StrAppend(&line, i > 0 ? "," : "", CsvField(PlainText(row[i])));
    }
    out << line << "\n";
  }
}

void RenderJson(const Table& table, absl::string_view key, std::ostream& out) {
  Json rows = Json::array();
  for (const std::vector<Cell>& row : table.rows) rows.push_back(RowJson(table, row));
  Json document = Json::object();
  document[std::string(key)] = std::move(rows);
  out << JsonText(document);
}

void RenderJsonl(const Table& table, std::ostream& out) {
  for (const std::vector<Cell>& row : table.rows) out << JsonLine(RowJson(table, row));
}

}  // namespace param
