#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/output/axis.h"
#include "client/output/html.h"
#include "proto/base/text.h"

namespace param {
namespace {

constexpr double kWidth = 640, kHeight = 360;
constexpr double kLeft = 78, kRight = 30, kTop = 12, kBottom = 34;
constexpr std::size_t kColors = 8;  // --c0 to --c7 of the style sheet
constexpr std::size_t kMostTicks = 8;

struct Frame {
  LogAxis x, y;
  double X(double value) const { return kLeft + x.Place(value) * (kWidth - kLeft - kRight); }
  double Y(double value) const {
    return kHeight - kBottom - y.Place(value) * (kHeight - kTop - kBottom);
  }
};

std::string ColorOf(std::size_t curve) { return absl::StrCat("var(--c", curve % kColors, ")"); }

std::string Grid(const Frame& frame, const std::string& unit) {
  std::string out;
  std::vector<double> across = DecimalTicks(frame.y, kMostTicks);
  if (across.size() < 2) across = {frame.y.low, frame.y.high};
  for (const double tick : across) {
    const double y = frame.Y(tick);
    absl::StrAppendFormat(&out,
                          "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>"
                          "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                          kLeft, kWidth - kRight, y, y, kLeft - 8, y + 4,
                          HtmlText(FormatSi(tick, unit)));
  }
  std::vector<double> up = SizeTicks(frame.x, kMostTicks);
  if (up.empty()) up = {frame.x.low, frame.x.high};
  for (const double tick : up) {
    const double x = frame.X(tick);
    absl::StrAppendFormat(&out,
                          "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>"
                          "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n",
                          x, x, kTop, kHeight - kBottom, x, kHeight - kBottom + 18,
                          HtmlText(SizeText(tick)));
  }
  return out;
}

std::string CurveOf(const Frame& frame, const Curve& curve, const std::string& unit,
                    std::size_t index) {
  std::string path, points;
  for (const auto& [x, y] : curve.points) {
    absl::StrAppendFormat(&path, "%.1f,%.1f ", frame.X(x), frame.Y(y));
    absl::StrAppendFormat(
        &points,
        "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"><title>%s</title>"
        "</circle>\n",
        frame.X(x), frame.Y(y), ColorOf(index),
        HtmlText(absl::StrCat(curve.label, ", ", SizeText(x), ": ", FormatSi(y, unit))));
  }
  return absl::StrFormat(
      "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n%s", path,
      ColorOf(index), points);
}

}  // namespace

std::string HtmlChart(const Chart& chart) {
  if (chart.curves.empty()) return "";
  const Frame frame = {AxisOf(chart, true), AxisOf(chart, false)};
  std::string out = absl::StrFormat(
      "<figure><figcaption>%s over size</figcaption>\n<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" "
      "aria-label=\"%s over size\">\n",
      HtmlText(chart.title), kWidth, kHeight, HtmlText(chart.title));
  absl::StrAppend(&out, Grid(frame, chart.unit));
  for (std::size_t i = 0; i < chart.curves.size(); ++i) {
    absl::StrAppend(&out, CurveOf(frame, chart.curves[i], chart.unit, i));
  }
  absl::StrAppend(&out, "</svg>\n<ul class=\"legend\">");
  for (std::size_t i = 0; i < chart.curves.size(); ++i) {
    absl::StrAppend(&out, "<li><span class=\"key\" style=\"background: ", ColorOf(i), "\"></span>",
                    HtmlText(chart.curves[i].label), "</li>");
  }
  return absl::StrCat(out, "</ul></figure>\n");
}

}  // namespace param
