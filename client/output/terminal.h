#pragma once
// What paramctl writes to and how: facts about a stream, colour, a buffer over a descriptor.

#include <array>
#include <streambuf>
#include <string>

#include "absl/strings/string_view.h"

namespace param {

enum class Format { kText, kWide, kJson, kJsonl, kCsv };

// Gathered once per stream in main(); tests fill it in by hand.
struct TerminalFacts {
  bool is_tty = false;
  std::string no_color;  // $NO_COLOR, empty when unset
  std::string term;      // $TERM
  int columns = 0;       // width of the terminal, 0 when there is none
  bool utf8 = false;     // the locale's characters are UTF-8
};

// Whether $LC_ALL, $LC_CTYPE or $LANG, the first of them that is set, names UTF-8.
bool IsUtf8Locale(absl::string_view lc_all, absl::string_view lc_ctype, absl::string_view lang);

// An explicit --no-color beats the terminal; without one, colour needs a capable terminal.
bool UseColor(bool no_color_flag, const TerminalFacts& facts);

enum class Style { kPlain, kGood, kWarn, kBad, kDim, kBold };

// `text` in the colour of `style`, or as it is when colour is off.
std::string Paint(absl::string_view text, Style style, bool color);

// For a terminal: control characters of foreign text (logs, reasons) as \xNN, line breaks as
// spaces.
std::string SafeText(absl::string_view text);

// Columns that UTF-8 text takes on a terminal, one per code point.
std::size_t DisplayWidth(absl::string_view text);

// An output buffer over a descriptor that remembers why writing failed. Owned by main(); not thread
// safe.
class FdBuffer final : public std::streambuf {
 public:
  explicit FdBuffer(int fd) : fd_(fd) { setp(buffer_.data(), buffer_.data() + buffer_.size()); }
  FdBuffer(const FdBuffer&) = delete;
  FdBuffer& operator=(const FdBuffer&) = delete;
  ~FdBuffer() override { sync(); }

  // errno of the first write that failed, 0 when none did. EPIPE: the reader went away.
  int error() const { return error_; }

 protected:
  int_type overflow(int_type character) override;
  int sync() override;

 private:
  const int fd_;
  int error_ = 0;
  std::array<char, 8192> buffer_ = {};
};

}  // namespace param
