#pragma once
// Small text rules that every program shares: numbers without loss, scaled for people, near names.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace param {

// Shortest text that reads back as the same double, in any locale; "inf", "-inf", "nan".
std::string FormatDouble(double value);

// For people: four significant digits and an SI prefix, "1.234 TFLOP/s", "12.3 us", "--" when not
// finite. `unit` is a base unit: "s", "B", "B/s", "FLOP/s", "1" (no unit, no prefix).
std::string FormatSi(double value, absl::string_view unit);

// Bytes for people: "64 B", "1.5 KiB", "2 GiB".
std::string FormatBytes(std::int64_t bytes);

// "250ms", "1m30s", "2h"; a bare number is seconds. Errors say what was wrong.
absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text);

// `text` with a '?' for each byte that is not part of UTF-8, cut to at most `limit` bytes, not
// inside a character. What other programs say may be anything; messages between ours may not.
std::string ValidUtf8(absl::string_view text, std::size_t limit = absl::string_view::npos);

// The nearest of `names` for a mistyped word, or "" when none is near (distance over a third).
std::string NearestName(absl::string_view word, const std::vector<std::string>& names);

// "; did you mean \"x\"?" or "".
std::string DidYouMean(absl::string_view word, const std::vector<std::string>& names);

}  // namespace param
