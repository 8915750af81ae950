#include "absl/strings/str_cat.h"
#include "proto/line/messages.h"

namespace param::line {

absl::Status LineReader::Feed(absl::string_view bytes) {
  if (!dead_) {
    if (begin_ > 0 && begin_ >= buffer_.size() / 2) {  // what was taken is the larger part
      buffer_.erase(0, begin_);
      scanned_ -= begin_;
      begin_ = 0;
    }
    while (!bytes.empty()) {
      const std::size_t newline = bytes.find('\n');
      const bool complete = newline != absl::string_view::npos;
      const std::size_t piece = complete ? newline : bytes.size();
      if (open_ + piece > max_line_bytes_) {
        dead_ = true;
        buffer_.resize(buffer_.size() - open_);  // the lines before it can still be taken
        break;
      }
      const std::size_t taken = piece + (complete ? 1 : 0);
      buffer_.append(bytes.data(), taken);
      open_ = complete ? 0 : open_ + piece;
      bytes.remove_prefix(taken);
    }
  }
  if (!dead_) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("a line is longer than ", max_line_bytes_, " bytes"));
}

bool LineReader::Next(std::string* line) {
  const std::size_t newline = buffer_.find('\n', scanned_);
  if (newline == std::string::npos) {
    scanned_ = buffer_.size();  // not looked at again, however small the pieces that come
    return false;
  }
  line->assign(buffer_, begin_, newline - begin_);
  begin_ = scanned_ = newline + 1;
  return true;
}

}  // namespace param::line
