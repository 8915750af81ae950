#pragma once
// Pieces of HTML for the report. Everything from outside is escaped here. Pure.

#include <string>

#include "absl/strings/string_view.h"
#include "client/output/curves.h"
#include "client/output/table.h"

namespace param {

// For text and for quoted attributes: & < > " ' as entities; control characters and bytes that are
// no UTF-8 as U+FFFD, so that a hostile name can neither leave its place nor spoil the document.
std::string HtmlText(absl::string_view text);

// The document around `body`, with the style sheet.
std::string HtmlPage(absl::string_view title, absl::string_view body);

// <table>; cells as CellText has them, coloured by style. Columns that are wide_only are shown.
std::string HtmlTable(const Table& table);

// An SVG drawing with logarithmic axes, a title on every point, and its legend. "" without points.
std::string HtmlChart(const Chart& chart);

}  // namespace param
