#include "client/output/progress.h"

#include "absl/strings/str_cat.h"

namespace param {
namespace {

constexpr absl::Duration kPlainInterval = absl::Seconds(10);
constexpr std::size_t kMaxLine = 100;  // a longer line would wrap and could not be redrawn

}  // namespace

void Progress::Show(absl::string_view what, absl::string_view counters) {
  if (silent_) return;
  if (redraw_) {
    std::string line = SafeText(counters.empty() ? what : absl::StrCat(what, "  ", counters));
    if (line.size() > kMaxLine) line.resize(kMaxLine);
    if (line == shown_) return;
    err_ << "\r\x1b[K" << line << std::flush;
    shown_ = line;
    return;
  }
  const absl::Duration now = clock_.Monotonic();
  if (what == plain_ || now - plain_at_ < kPlainInterval) return;
  err_ << SafeText(what) << "\n" << std::flush;
  plain_ = std::string(what);
  plain_at_ = now;
}

void Progress::Note(absl::string_view line) {
  if (silent_) return;
  Clear();
  err_ << SafeText(line) << "\n" << std::flush;
}

void Progress::Clear() {
  if (shown_.empty()) return;
  err_ << "\r\x1b[K" << std::flush;
  shown_.clear();
}

}  // namespace param
