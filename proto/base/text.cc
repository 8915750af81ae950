#include "proto/base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace param {
namespace {

struct Prefix {
  double scale;
  const char* name;
};

std::string FourDigits(double value) {
  const double size = std::fabs(value);
  const int digits = size >= 999.95 ? 0 : size >= 99.995 ? 1 : size >= 9.9995 ? 2 : 3;
  return absl::StrFormat("%.*f", digits, value);
}

std::size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replace});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string FormatDouble(double value) {
  if (std::isnan(value)) return "nan";  // whatever its sign
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return error == std::errc() ? std::string(buffer, end) : "nan";
}

std::string FormatSi(double value, absl::string_view unit) {
  if (!std::isfinite(value)) return "--";
  if (unit == "1" || unit.empty()) return FourDigits(value);
  static constexpr Prefix kPrefixes[] = {{1e18, "E"}, {1e15, "P"}, {1e12, "T"}, {1e9, "G"},
                                         {1e6, "M"},  {1e3, "k"},  {1, ""},     {1e-3, "m"},
                                         {1e-6, "u"}, {1e-9, "n"}};
  const double size = std::fabs(value);
  const bool down_only = unit == "s";  // nobody reads kiloseconds
  for (const Prefix& prefix : kPrefixes) {
    if (down_only && prefix.scale > 1) continue;
    if (!down_only && prefix.scale < 1) continue;
    if (size >= prefix.scale * 0.99995) {
      return absl::StrCat(FourDigits(value / prefix.scale), " ", prefix.name, unit);
    }
  }
  return absl::StrCat(size == 0 ? "0" : absl::StrFormat("%.3g", value), " ", unit);
}

std::string FormatBytes(std::int64_t bytes) {
  static constexpr const char* kNames[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  std::size_t i = 0;
  // What would be rounded up to 1024 is one of the next unit.
  for (; i + 1 < std::size(kNames) && std::fabs(value) >= 1023.5; ++i) value /= 1024;
  std::string digits = FourDigits(value);
  if (absl::StrContains(digits, '.')) {
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.back() == '.') digits.pop_back();
  }
  return absl::StrCat(digits, " ", kNames[i]);
}

absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text) {
  const std::string trimmed(absl::StripAsciiWhitespace(text));
  absl::Duration duration;
  double seconds = 0;
  const char* const begin = trimmed.data();
  const char* const end = begin + trimmed.size();
  const auto [rest, error] = std::from_chars(begin, end, seconds);
  if (error == std::errc() && rest == end && std::isfinite(seconds)) {
    duration = absl::Seconds(seconds);
  } else if (!absl::ParseDuration(trimmed, &duration)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is not a duration; write 250ms, 30s, 5m or 2h"));
  }
  if (duration == absl::InfiniteDuration() || duration == -absl::InfiniteDuration()) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is too long a duration"));
  }
  if (duration < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is negative"));
  }
  return duration;
}

namespace {

// Bytes of the character that `text` begins with; 0: it begins with none.
std::size_t CharacterBytes(absl::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t size = first < 0x80                    ? 1
                           : first >= 0xC2 && first < 0xE0 ? 2
                           : first >= 0xE0 && first < 0xF0 ? 3
                           : first >= 0xF0 && first < 0xF5 ? 4
                                                           : 0;
  if (size == 0 || size > text.size()) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if (size < 3) return size;
  // Longer than needed, surrogates, beyond the last plane.
  const bool is_bad = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) >= 0xA0) ||
                      (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) >= 0x90);
  return is_bad ? 0 : size;
}

}  // namespace

std::string ValidUtf8(absl::string_view text, std::size_t limit) {
  std::string valid;
  while (!text.empty()) {
    const std::size_t size = CharacterBytes(text);
    if (valid.size() + std::max<std::size_t>(size, 1) > limit) break;
    if (size == 0) {
      valid += '?';
    } else {
      valid.append(text.data(), size);
    }
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return valid;
}

std::string NearestName(absl::string_view word, const std::vector<std::string>& names) {
  std::string best;
  if (word.size() > 64) return best;  // no name is that long, and the search is quadratic
  // A word of one letter shares nothing with another at distance one.
  std::size_t best_distance = std::min(word.size(), std::max<std::size_t>(1, word.size() / 3) + 1);
  for (const std::string& name : names) {
    const std::size_t distance = EditDistance(word, name);
    if (distance < best_distance) {
      best_distance = distance;
      best = name;
    }
  }
  return best;
}

std::string DidYouMean(absl::string_view word, const std::vector<std::string>& names) {
  const std::string near = NearestName(word, names);
  return near.empty() ? "" : absl::StrCat("; did you mean \"", near, "\"?");
}

}  // namespace param
