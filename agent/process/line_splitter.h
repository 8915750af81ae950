#pragma once
// A child's output cut into lines.

#include <functional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace param::agent {

// Lines longer than the limit are cut into several. Not thread safe.
class LineSplitter {
 public:
  explicit LineSplitter(std::size_t max_line_bytes) : max_(max_line_bytes) {}

  void Feed(absl::string_view bytes, const std::function<void(absl::string_view)>& line) {
    while (!bytes.empty()) {
      const std::size_t newline = bytes.find('\n');
      const bool is_whole = newline != absl::string_view::npos;
      absl::string_view piece = is_whole ? bytes.substr(0, newline) : bytes;
      const std::size_t room = max_ - kept_.size();
      const bool is_cut = piece.size() > room;
      if (is_cut) piece = piece.substr(0, room);
      kept_.append(piece.data(), piece.size());
      bytes.remove_prefix(piece.size() + (is_whole && !is_cut ? 1 : 0));
      if (is_cut || is_whole) line(std::exchange(kept_, std::string()));
    }
  }
  // What came after the last newline.
  void Finish(const std::function<void(absl::string_view)>& line) {
    if (!kept_.empty()) line(std::exchange(kept_, std::string()));
  }

 private:
  const std::size_t max_;
  std::string kept_;
};

}  // namespace param::agent
