#include "client/output/html.h"

#include "absl/strings/str_cat.h"

namespace param {
namespace {

constexpr absl::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

// Light and dark by the reader's setting. Colours of curves are readable on both.
constexpr absl::string_view kStyleSheet = R"(
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #ffffff; --soft: #5b6470; --line: #d9dee4;
  --panel: #f5f7f9; --good: #1a7f37; --warn: #9a6700; --bad: #cf222e;
  --c0: #0969da; --c1: #bc4c00; --c2: #1a7f37; --c3: #8250df; --c4: #bf3989; --c5: #1b7c83;
  --c6: #9a6700; --c7: #57606a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --soft: #9aa4af;
  --line: #30363d; --panel: #161b22; --good: #3fb950; --warn: #d29922; --bad: #ff7b72;
  --c0: #58a6ff; --c1: #f0883e; --c2: #3fb950; --c3: #bc8cff; --c4: #ff7bc5; --c5: #39c5cf;
  --c6: #e3b341; --c7: #9aa4af; } }
body { margin: 0 auto; max-width: 84rem; padding: 1.5rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.25rem 0 .4rem; } p { margin: .4rem 0; } .soft { color: var(--soft); }
.good { color: var(--good); } .warn { color: var(--warn); } .bad { color: var(--bad); }
.dim { color: var(--soft); } .bold { font-weight: 600; }
.box { border-left: 4px solid var(--bad); background: var(--panel); padding: .6rem 1rem; margin: 1rem 0;
  overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: left;
  white-space: nowrap; }
th { color: var(--soft); font-weight: 600; } .right { text-align: right; }
td.wrap { white-space: normal; overflow-wrap: anywhere; }
pre { background: var(--panel); padding: .7rem 1rem; overflow-x: auto; border-radius: 4px; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(30rem, 100%), 1fr)); gap: 1.5rem; }
figure { margin: 0; } svg { width: 100%; height: auto; } svg text { fill: var(--soft); font-size: 12px; }
figcaption { font-weight: 600; margin-bottom: .3rem; }
.grid { stroke: var(--line); } .legend { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem;
  list-style: none; padding: 0; margin: .3rem 0; font-size: .9rem; }
.key { display: inline-block; width: .8em; height: .8em; border-radius: 50%; margin-right: .4em; }
.heat td { text-align: center; padding: .15rem .4rem; font-size: .8rem; } .heat th { font-size: .8rem; }
.heat td.name { text-align: left; }
)";

// Length of the valid UTF-8 sequence at `text`, 0 when there is none (RFC 3629, without surrogates
// and overlong forms).
std::size_t SequenceLength(absl::string_view text) {
  const auto at = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = at(0);
  const std::size_t length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first >= 0x80 && (first < 0xc2 || first > 0xf4)) return 0;
  if (text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xc0u) != 0x80u) return 0;
  }
  if (first == 0xe0 && at(1) < 0xa0) return 0;
  if (first == 0xed && at(1) > 0x9f) return 0;
  if (first == 0xf0 && at(1) < 0x90) return 0;
  if (first == 0xf4 && at(1) > 0x8f) return 0;
  return length;
}

absl::string_view ClassOf(Style style) {
  switch (style) {
    case Style::kGood:
      return "good";
    case Style::kWarn:
      return "warn";
    case Style::kBad:
      return "bad";
    case Style::kDim:
      return "dim";
    case Style::kBold:
      return "bold";
    case Style::kPlain:
      break;
  }
  return "";
}

std::string ClassAttribute(const Column& column, Style style) {
  std::string classes(ClassOf(style));
  if (column.align == Align::kRight) absl::StrAppend(&classes, classes.empty() ? "" : " ", "right");
  return classes.empty() ? "" : absl::StrCat(" class=\"", classes, "\"");
}

}  // namespace

std::string HtmlText(absl::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = SequenceLength(text);
    const char first = text[0];
    const auto byte = static_cast<unsigned char>(first);
    if (length == 0 || (byte < 0x20 && first != '\n' && first != '\t') || byte == 0x7f) {
      absl::StrAppend(&out, kReplacement);
      text.remove_prefix(1);
      continue;
    }
    switch (first) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        absl::StrAppend(&out, text.substr(0, length));
    }
    text.remove_prefix(length);
  }
  return out;
}

std::string HtmlPage(absl::string_view title, absl::string_view body) {
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      // Even if something were not escaped: the file may load and run nothing.
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
      HtmlText(title), "</title>\n<style>", kStyleSheet, "</style>\n</head>\n<body>\n", body,
      "</body>\n</html>\n");
}

std::string HtmlTable(const Table& table) {
  std::string out = "<div class=\"scroll\"><table>\n<tr>";
  for (const Column& column : table.columns) {
    absl::StrAppend(&out, "<th", ClassAttribute(column, Style::kPlain), ">", HtmlText(column.title),
                    "</th>");
  }
  absl::StrAppend(&out, "</tr>\n");
  for (const std::vector<Cell>& row : table.rows) {
    absl::StrAppend(&out, "<tr>");
    for (std::size_t i = 0; i < row.size(); ++i) {
      absl::StrAppend(&out, "<td", ClassAttribute(table.columns[i], row[i].style), ">",
                      HtmlText(CellText(table.columns[i], row[i])), "</td>");
    }
    absl::StrAppend(&out, "</tr>\n");
  }
  return absl::StrCat(out, "</table></div>\n");
}

}  // namespace param
