#pragma once
// One model of a table: typed cells in base units, and its renderers. Text is for people and may
// change; CSV, JSON and JSON lines are for programs: base units, all digits, stable.

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/output/terminal.h"

namespace param {

enum class Align { kLeft, kRight };

// How text shows a number; machine formats always have the plain number.
enum class Scale {
  kPlain,    // as it is
  kSi,       // FormatSi with the column's unit
  kBytes,    // FormatBytes
  kPercent,  // 0.934 as "93.4 %"
  kChange,   // 0.034 as "+3.4 %"
};

struct Column {
  std::string key;         // for machines: "time_p50"
  std::string title = {};  // for people: "TIME"
  std::string unit = {};   // base unit, "" for none; in the header of CSV
  Align align = Align::kLeft;
  Scale scale = Scale::kPlain;
  bool wide_only = false;  // left out of Format::kText
};

struct Cell {
  using Value = std::variant<std::monostate, std::int64_t, double, bool, std::string>;
  Value value;  // monostate: nothing to say
  Style style = Style::kPlain;

  Cell() = default;
  template <typename T>
  Cell(T v, Style s = Style::kPlain)  // NOLINT(google-explicit-constructor): a cell is its value
      : value(std::move(v)), style(s) {}
};

struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;  // as many cells as columns
};

// What a person reads in a cell.
std::string CellText(const Column& column, const Cell& cell);

// Rows below an upper-case header, columns two blanks apart.
struct TextOptions {
  bool wide = false;
  bool color = false;
  bool header = true;
  std::string indent;
};
void RenderText(const Table& table, const TextOptions& options, std::ostream& out);

// RFC 4180 with LF line ends; the unit in the header: "time_p50 (s)". Numbers with all digits, an
// unknown or non-finite number is empty.
void RenderCsv(const Table& table, std::ostream& out, bool header = true);

// {"KEY": [{...}, ...]} and one object per line.
void RenderJson(const Table& table, absl::string_view key, std::ostream& out);
void RenderJsonl(const Table& table, std::ostream& out);

}  // namespace param
