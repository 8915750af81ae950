#include "client/output/plot.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/output/axis.h"
#include "client/output/terminal.h"
#include "proto/base/text.h"

namespace param {
namespace {

constexpr int kLeastWidth = 40;
constexpr int kLabelWidth = 10;  // of the y axis
constexpr std::size_t kRowsPerTick = 3;
constexpr std::size_t kColumnsPerTick = 11;

// Markers and colours repeat after so many curves.
constexpr const char* kUtf8Markers[] = {"●", "▲", "■", "◆", "○", "△", "□", "◇"};
constexpr const char* kAsciiMarkers[] = {"*", "+", "o", "x", "#", "@", "%", "&"};
constexpr const char* kColors[] = {"36", "33", "32", "35", "34", "31", "96", "93"};
constexpr std::size_t kStyles = std::size(kColors);

// What is drawn in one character cell: line dots of the curve drawn last, or a marker.
struct DrawnCell {
  unsigned dots = 0;  // braille pattern
  bool marker = false;
  std::size_t curve = 0;
};

// Braille dots lie 2 wide and 4 high in a cell; bit order of Unicode.
constexpr unsigned kDots[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};

class Canvas {
 public:
  Canvas(int columns, int rows)
      : columns_(columns), rows_(rows), cells_(static_cast<std::size_t>(columns * rows)) {}

  int dot_columns() const { return columns_ * 2; }
  int dot_rows() const { return rows_ * 4; }

  // y grows upwards.
  void Line(int x0, int y0, int x1, int y1, std::size_t curve) {
    const int steps = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1});
    for (int i = 0; i <= steps; ++i) {
      const double part = static_cast<double>(i) / steps;
      Dot(static_cast<int>(std::lround(x0 + (x1 - x0) * part)),
          static_cast<int>(std::lround(y0 + (y1 - y0) * part)), curve);
    }
  }
  void Marker(int x, int y, std::size_t curve) {
    DrawnCell& cell = At(x / 2, y / 4);
    cell.marker = true;
    cell.curve = curve;
  }
  const DrawnCell& cell(int column, int row_from_top) const {
    return cells_[Index(column, row_from_top)];
  }

 private:
  std::size_t Index(int column, int row_from_top) const {
    return static_cast<std::size_t>(row_from_top) * static_cast<std::size_t>(columns_) +
           static_cast<std::size_t>(column);
  }
  void Dot(int x, int y, std::size_t curve) {
    DrawnCell& cell = At(x / 2, y / 4);
    cell.dots |= kDots[3 - y % 4][x % 2];
    cell.curve = curve;
  }
  DrawnCell& At(int column, int row) { return cells_[Index(column, rows_ - 1 - row)]; }

  const int columns_, rows_;
  std::vector<DrawnCell> cells_;
};

std::string Colored(const std::string& text, std::size_t curve, bool color) {
  if (!color) return text;
  return absl::StrCat("\x1b[", kColors[curve % kStyles], "m", text, "\x1b[0m");
}

std::string Utf8Of(unsigned code_point) {  // of the braille block: always three bytes
  std::string out;
  out += static_cast<char>(0xe0u | (code_point >> 12));
  out += static_cast<char>(0x80u | ((code_point >> 6) & 0x3fu));
  out += static_cast<char>(0x80u | (code_point & 0x3fu));
  return out;
}

std::string MarkerOf(std::size_t curve, bool utf8) {
  return utf8 ? kUtf8Markers[curve % kStyles] : kAsciiMarkers[curve % kStyles];
}

std::string CellOf(const DrawnCell& cell, const PlotOptions& options) {
  if (cell.marker) {
    return Colored(MarkerOf(cell.curve, options.utf8), cell.curve, options.color);
  }
  if (cell.dots == 0) return " ";
  return Colored(options.utf8 ? Utf8Of(0x2800u + cell.dots) : ".", cell.curve, options.color);
}

int DotAt(const LogAxis& axis, double value, int dots) {
  const auto dot = static_cast<int>(std::lround(axis.Place(value) * (dots - 1)));
  return std::clamp(dot, 0, dots - 1);
}

void Draw(const Chart& chart, const LogAxis& x, const LogAxis& y, Canvas* canvas) {
  const auto at = [&](const std::pair<double, double>& point) {
    return std::pair(DotAt(x, point.first, canvas->dot_columns()),
                     DotAt(y, point.second, canvas->dot_rows()));
  };
  for (std::size_t i = 0; i < chart.curves.size(); ++i) {
    const auto& points = chart.curves[i].points;
    for (std::size_t k = 1; k < points.size(); ++k) {
      const auto [x0, y0] = at(points[k - 1]);
      const auto [x1, y1] = at(points[k]);
      canvas->Line(x0, y0, x1, y1, i);
    }
  }
  for (std::size_t i = 0; i < chart.curves.size(); ++i) {
    for (const auto& point : chart.curves[i].points) {
      const auto [dot_x, dot_y] = at(point);
      canvas->Marker(dot_x, dot_y, i);
    }
  }
}

// The label of each row, "" for most.
std::vector<std::string> RowLabels(const LogAxis& axis, const std::string& unit, int rows) {
  std::vector<std::string> labels(static_cast<std::size_t>(rows));
  const std::size_t most = std::max<std::size_t>(2, static_cast<std::size_t>(rows) / kRowsPerTick);
  std::vector<double> ticks = DecimalTicks(axis, most);
  if (ticks.size() < 2) ticks = {axis.low, axis.high};
  for (const double tick : ticks) {
    const int row = rows - 1 - DotAt(axis, tick, rows * 4) / 4;
    labels[static_cast<std::size_t>(row)] = FormatSi(tick, unit);
  }
  return labels;
}

std::string XLabels(const LogAxis& axis, int columns) {
  std::string line(static_cast<std::size_t>(columns + kLabelWidth), ' ');
  std::size_t free_from = 0;
  std::vector<double> ticks = SizeTicks(
      axis, std::max<std::size_t>(2, static_cast<std::size_t>(columns) / kColumnsPerTick));
  if (ticks.empty()) ticks = {axis.low, axis.high};
  for (const double tick : ticks) {
    const std::string text = SizeText(tick);
    const auto column = static_cast<std::size_t>(DotAt(axis, tick, columns * 2) / 2);
    // Below its column, as far to the left as the line's end asks for.
    const std::size_t start = std::min(column, static_cast<std::size_t>(columns) - text.size());
    if (start < free_from || text.size() > static_cast<std::size_t>(columns)) continue;
    line.replace(start, text.size(), text);
    free_from = start + text.size() + 2;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string RightAligned(const std::string& text, int width) {
  const auto taken = static_cast<int>(DisplayWidth(text));
  return absl::StrCat(std::string(static_cast<std::size_t>(std::max(0, width - taken)), ' '), text);
}

}  // namespace

std::string RenderPlot(const Chart& chart, const PlotOptions& options) {
  if (chart.curves.empty()) return "";
  const int columns = std::max(kLeastWidth, options.width) - kLabelWidth - 2;
  const int rows = std::max(4, options.height);
  const LogAxis x = AxisOf(chart, true), y = AxisOf(chart, false);
  Canvas canvas(columns, rows);
  Draw(chart, x, y, &canvas);
  const std::vector<std::string> labels = RowLabels(y, chart.unit, rows);
  std::string out = absl::StrCat(chart.title, " over size\n");
  for (int row = 0; row < rows; ++row) {
    const std::string& label = labels[static_cast<std::size_t>(row)];
    std::string line =
        absl::StrCat(RightAligned(label, kLabelWidth), " ",
                     options.utf8 ? (label.empty() ? "│" : "┤") : (label.empty() ? "|" : "+"));
    std::string drawing;
    for (int column = 0; column < columns; ++column) {
      drawing += CellOf(canvas.cell(column, row), options);
    }
    drawing.erase(drawing.find_last_not_of(' ') + 1);
    absl::StrAppend(&out, line, drawing, "\n");
  }
  std::string rule;
  for (int column = 0; column < columns; ++column) rule += options.utf8 ? "─" : "-";
  absl::StrAppend(&out, std::string(kLabelWidth + 1, ' '), options.utf8 ? "└" : "+", rule, "\n",
                  std::string(kLabelWidth + 2, ' '), XLabels(x, columns), "\n");
  for (std::size_t i = 0; i < chart.curves.size(); ++i) {
    absl::StrAppend(&out, std::string(kLabelWidth + 2, ' '),
                    Colored(MarkerOf(i, options.utf8), i, options.color), " ",
                    SafeText(chart.curves[i].label), "\n");
  }
  return out;
}

}  // namespace param
