#pragma once
// The last lines of something, in bounded memory.

#include <cstddef>
#include <deque>
#include <string>

#include "absl/strings/string_view.h"

namespace param::agent {

// Not thread safe.
class LogRing {
 public:
  LogRing(std::size_t max_lines, std::size_t max_bytes)
      : max_lines_(max_lines), max_bytes_(max_bytes) {}

  // Drops the oldest lines to make room. A line longer than the ring is cut.
  void Push(absl::string_view line) {
    lines_.emplace_back(line.substr(0, max_bytes_));
    bytes_ += lines_.back().size();
    while (lines_.size() > max_lines_ || bytes_ > max_bytes_) {
      bytes_ -= lines_.front().size();
      lines_.pop_front();
    }
  }
  const std::deque<std::string>& lines() const { return lines_; }
  void Clear() {
    lines_.clear();
    bytes_ = 0;
  }

 private:
  const std::size_t max_lines_, max_bytes_;
  std::deque<std::string> lines_;
  std::size_t bytes_ = 0;
};

}  // namespace param::agent
