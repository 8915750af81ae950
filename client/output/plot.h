#pragma once
// A chart for a terminal: logarithmic axes, braille dots where the terminal shows them, else ASCII;
// a marker at every point and a legend that says whose it is. Pure.

#include <string>

#include "client/output/curves.h"

namespace param {

struct PlotOptions {
  int width = 80;   // columns in all; at least 40 are used
  int height = 16;  // rows of the drawing
  bool utf8 = false;
  bool color = false;
};

// Ends with a newline; "" for a chart without points.
std::string RenderPlot(const Chart& chart, const PlotOptions& options);

}  // namespace param
