#include "client/output/terminal.h"

#include <unistd.h>

#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace param {

bool UseColor(bool no_color_flag, const TerminalFacts& facts) {
  if (no_color_flag) return false;
  return facts.is_tty && facts.no_color.empty() && facts.term != "dumb";
}

bool IsUtf8Locale(absl::string_view lc_all, absl::string_view lc_ctype, absl::string_view lang) {
  const absl::string_view locale = !lc_all.empty() ? lc_all : !lc_ctype.empty() ? lc_ctype : lang;
  const std::string lower = absl::AsciiStrToLower(locale);
  return absl::StrContains(lower, "utf-8") || absl::StrContains(lower, "utf8");
}

std::string Paint(absl::string_view text, Style style, bool color) {
  const char* code = "";
  switch (style) {
    case Style::kPlain:
      break;
    case Style::kGood:
      code = "32";
      break;
    case Style::kWarn:
      code = "33";
      break;
    case Style::kBad:
      code = "31";
      break;
    case Style::kDim:
      code = "2";
      break;
    case Style::kBold:
      code = "1";
      break;
  }
  if (!color || *code == '\0') return std::string(text);
  return absl::StrCat("\x1b[", code, "m", text, "\x1b[0m");
}

std::string SafeText(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (character == '\n' || character == '\t') {
      out += ' ';
    } else if (byte < 0x20 || byte == 0x7f) {
      absl::StrAppendFormat(&out, "\\x%02x", byte);
    } else {
      out += character;
    }
  }
  return out;
}

std::size_t DisplayWidth(absl::string_view text) {
  std::size_t width = 0;
  for (const char character : text) {
    if ((static_cast<unsigned char>(character) & 0xc0u) != 0x80u) ++width;
  }
  return width;
}

FdBuffer::int_type FdBuffer::overflow(int_type character) {
  if (sync() != 0) return traits_type::eof();
  if (!traits_type::eq_int_type(character, traits_type::eof())) {
    *pptr() = traits_type::to_char_type(character);
    pbump(1);
  }
  return traits_type::not_eof(character);
}

int FdBuffer::sync() {
  const char* from = pbase();
  while (error_ == 0 && from < pptr()) {
    const ssize_t wrote = ::write(fd_, from, static_cast<std::size_t>(pptr() - from));
    if (wrote >= 0) {
      from += wrote;
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  setp(buffer_.data(), buffer_.data() + buffer_.size());
  return error_ == 0 ? 0 : -1;
}

}  // namespace param
