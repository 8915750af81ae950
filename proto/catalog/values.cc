#include "proto/catalog/values.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>
#include <type_traits>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/base/status.h"
#include "proto/base/text.h"
#include "proto/catalog/cases.h"

namespace param {
namespace {

absl::Status Bad(const ParamSpec& spec, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(FlagName(spec.name), ": ", what));
}

absl::Status TooMany(const ParamSpec& spec) {
  return Bad(spec, absl::StrCat("more than ", kMaxCases, " values"));
}

template <typename Number>
std::string Show(Number value) {
  if constexpr (std::is_same_v<Number, double>) {
    return FormatDouble(value);
  } else {
    return absl::StrCat(value);
  }
}

// The whole of `text` as a number; nothing else, no sign but '-', no blanks.
template <typename Number>
bool ReadWhole(absl::string_view text, Number* value) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, *value);
  return error == std::errc() && rest == end;
}

absl::StatusOr<std::int64_t> ReadInt(const ParamSpec& spec, absl::string_view text) {
  std::int64_t value = 0;
  if (!ReadWhole(text, &value)) {
    return Bad(spec, absl::StrCat(Quoted(text), " is not a whole number that fits 64 bits"));
  }
  return value;
}

// How many bits a size's suffix shifts by, or -1.
int SuffixShift(absl::string_view suffix) {
  const std::string lower = absl::AsciiStrToLower(suffix);
  if (lower.empty() || lower == "b") return 0;
  static constexpr absl::string_view kLetters = "kmgtpe";
  const std::size_t letter = kLetters.find(lower[0]);
  const absl::string_view rest = absl::string_view(lower).substr(1);
  if (letter == absl::string_view::npos || (rest != "" && rest != "b" && rest != "ib")) return -1;
  return static_cast<int>(letter + 1) * 10;
}

absl::StatusOr<std::int64_t> ReadBytes(const ParamSpec& spec, absl::string_view text) {
  std::int64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  const absl::string_view suffix =
      absl::StripAsciiWhitespace(text.substr(static_cast<std::size_t>(rest - text.data())));
  const int shift = SuffixShift(suffix);
  if (error == std::errc::result_out_of_range) {
    return Bad(spec, absl::StrCat(Quoted(text), " is too large a size"));
  }
  if (error != std::errc() || shift < 0) {
    return Bad(spec, absl::StrCat(Quoted(text), " is not a size; write 4096, 64K or 1MiB"));
  }
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(count, std::int64_t{1} << shift, &bytes)) {
    return Bad(spec, absl::StrCat(Quoted(text), " is too large a size"));
  }
  return bytes;
}

absl::StatusOr<double> ReadFloat(const ParamSpec& spec, absl::string_view text) {
  double value = 0;
  if (!ReadWhole(text, &value) || !std::isfinite(value)) {
    return Bad(spec, absl::StrCat(Quoted(text), " is not a finite number"));
  }
  return value == 0 ? 0 : value;  // -0 and 0 are one case
}

absl::StatusOr<double> ReadDuration(const ParamSpec& spec, absl::string_view text) {
  if (text.size() > 64) return Bad(spec, absl::StrCat(Quoted(text), " is not a duration"));
  PARAM_ASSIGN_OR_RETURN(const absl::Duration duration, ParseDuration(text), FlagName(spec.name));
  return absl::ToDoubleSeconds(duration);
}

// Reads one number of the parameter's type, without its range.
template <typename Number>
absl::StatusOr<Number> Read(const ParamSpec& spec, absl::string_view text) {
  if constexpr (std::is_same_v<Number, double>) {
    return spec.type == ParamType::kDuration ? ReadDuration(spec, text) : ReadFloat(spec, text);
  } else {
    return spec.type == ParamType::kBytes ? ReadBytes(spec, text) : ReadInt(spec, text);
  }
}

template <typename Number>
absl::StatusOr<Number> ReadInRange(const ParamSpec& spec, absl::string_view text) {
  PARAM_ASSIGN_OR_RETURN(const Number value, Read<Number>(spec, text));
  const double size = static_cast<double>(value);
  if (size < spec.min || size > spec.max) {
    return Bad(spec, absl::StrCat(Show(value), " is outside ", BoundText(spec.min), "..",
                                  BoundText(spec.max)));
  }
  return value;
}

// True when `*value` times `factor` is still at most `last`; then it is so multiplied.
bool Multiply(std::int64_t* value, std::int64_t factor, std::int64_t last) {
  if (*value > last / factor) return false;
  *value *= factor;
  return true;
}
bool Multiply(double* value, double factor, double last) {
  const double next = *value * factor;
  if (!(next <= last * (1 + 1e-12))) return false;
  *value = next;
  return true;
}

// Steps from `first` to `last`; a double's count forgives the rounding of decimal fractions.
double StepCount(std::int64_t first, std::int64_t last, std::int64_t step) {
  const std::uint64_t distance =
      static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first);
  return static_cast<double>(distance / static_cast<std::uint64_t>(step));
}
double StepCount(double first, double last, double step) {
  return std::floor((last - first) / step * (1 + 1e-12));
}

template <typename Number>
absl::Status AddFactors(const ParamSpec& spec, Number first, Number last, Number factor,
                        std::vector<Value>* values) {
  if (first <= 0) return Bad(spec, "a range with a factor must start above 0");
  if (!(factor > 1)) return Bad(spec, "the factor of a range must be above 1");
  Number value = first;
  do {
    if (values->size() >= kMaxCases) return TooMany(spec);
    values->push_back(value);
  } while (Multiply(&value, factor, last));
  return absl::OkStatus();
}

template <typename Number>
absl::Status AddSteps(const ParamSpec& spec, Number first, Number last, Number step,
                      std::vector<Value>* values) {
  if (!(step > 0)) return Bad(spec, "the step of a range must be above 0");
  const double steps = StepCount(first, last, step);
  if (!(steps + static_cast<double>(values->size()) < static_cast<double>(kMaxCases))) {
    return TooMany(spec);
  }
  if constexpr (std::is_integral_v<Number>) {
    // Unsigned differences: `first` to `last` may span all of int64.
    const auto wide = [](Number value) { return static_cast<std::uint64_t>(value); };
    for (Number value = first; value <= last; value += step) {
      values->push_back(value);
      if (wide(last) - wide(value) < wide(step)) break;
    }
  } else {
    for (std::int64_t i = 0; i <= static_cast<std::int64_t>(steps); ++i) {
      values->push_back(std::min(static_cast<Number>(first + static_cast<Number>(i) * step), last));
    }
  }
  return absl::OkStatus();
}

// FIRST:LAST:xFACTOR or FIRST:LAST:+STEP.
template <typename Number>
absl::Status AddRange(const ParamSpec& spec, absl::string_view text, std::vector<Value>* values) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits(':', 3));
  if (parts.size() != 3 || parts[2].size() < 2 ||
      !absl::StrContains("xX*+", parts[2].substr(0, 1))) {
    return Bad(spec, absl::StrCat(Quoted(text),
                                  " is not a range; write FIRST:LAST:xFACTOR or FIRST:LAST:+STEP"));
  }
  PARAM_ASSIGN_OR_RETURN(const Number first, ReadInRange<Number>(spec, parts[0]));
  PARAM_ASSIGN_OR_RETURN(const Number last, ReadInRange<Number>(spec, parts[1]));
  if (first > last) {
    return Bad(spec, absl::StrCat(Quoted(text), " is empty: it starts above its end"));
  }
  const absl::string_view stride = parts[2].substr(1);
  if (parts[2][0] == '+') {
    PARAM_ASSIGN_OR_RETURN(const Number step, Read<Number>(spec, stride));
    return AddSteps(spec, first, last, step, values);
  }
  if constexpr (std::is_same_v<Number, double>) {
    PARAM_ASSIGN_OR_RETURN(const double factor, ReadFloat(spec, stride));
    return AddFactors(spec, first, last, factor, values);
  } else {
    PARAM_ASSIGN_OR_RETURN(const std::int64_t factor, ReadInt(spec, stride));
    return AddFactors(spec, first, last, factor, values);
  }
}

template <typename Number>
absl::Status AddNumber(const ParamSpec& spec, absl::string_view text, std::vector<Value>* values) {
  if (absl::StrContains(text, ':')) return AddRange<Number>(spec, text, values);
  PARAM_ASSIGN_OR_RETURN(const Number value, ReadInRange<Number>(spec, text));
  values->push_back(value);
  return absl::OkStatus();
}

absl::Status AddBool(const ParamSpec& spec, absl::string_view text, std::vector<Value>* values) {
  const std::string lower = absl::AsciiStrToLower(text.substr(0, 8));
  if (lower == "true" || lower == "1" || lower == "yes" || lower == "on") {
    values->push_back(true);
  } else if (lower == "false" || lower == "0" || lower == "no" || lower == "off") {
    values->push_back(false);
  } else {
    return Bad(spec, absl::StrCat(Quoted(text), " is neither true nor false"));
  }
  return absl::OkStatus();
}

absl::Status AddChoice(const ParamSpec& spec, absl::string_view text, std::vector<Value>* values) {
  for (const absl::string_view choice : spec.choices) {
    if (text == choice) {
      values->push_back(std::string(choice));
      return absl::OkStatus();
    }
  }
  const std::vector<std::string> names(spec.choices.begin(), spec.choices.end());
  return Bad(spec, absl::StrCat(Quoted(text), " is not one of ", absl::StrJoin(names, ", "),
                                DidYouMean(text, names)));
}

absl::Status AddValue(const ParamSpec& spec, absl::string_view text, std::vector<Value>* values) {
  switch (spec.type) {
    case ParamType::kInt:
    case ParamType::kBytes:
      return AddNumber<std::int64_t>(spec, text, values);
    case ParamType::kFloat:
    case ParamType::kDuration:
      return AddNumber<double>(spec, text, values);
    case ParamType::kBool:
      return AddBool(spec, text, values);
    case ParamType::kChoice:
      return AddChoice(spec, text, values);
    case ParamType::kString:
      values->push_back(std::string(text));
      return absl::OkStatus();
  }
  return Bad(spec, "has an unknown type");
}

template <typename T>
const T* Find(const Params& params, absl::string_view name) {
  const auto it = params.find(name);
  return it == params.end() ? nullptr : std::get_if<T>(&it->second);
}

}  // namespace

std::string Quoted(absl::string_view text) {
  static constexpr std::size_t kLongest = 60;
  const bool cut = text.size() > kLongest;
  return absl::StrCat("\"", absl::Utf8SafeCEscape(text.substr(0, kLongest)), cut ? "...\"" : "\"");
}

std::string BoundText(double bound) {
  constexpr double kExact = 9007199254740992;  // 2^53: whole numbers up to here are themselves
  if (bound != std::floor(bound) || std::fabs(bound) > kExact) return FormatDouble(bound);
  return absl::StrCat(static_cast<std::int64_t>(bound));
}

absl::StatusOr<std::vector<Value>> ParseValues(const ParamSpec& spec, absl::string_view text) {
  std::vector<Value> values;
  const bool is_text = spec.type == ParamType::kString;
  if (is_text && (spec.role == ParamRole::kMeasure || text.empty())) {
    values.push_back(std::string(text));  // one value, commas and all
    return values;
  }
  while (true) {
    if (values.size() >= kMaxCases) return TooMany(spec);
    const std::size_t comma = text.find(',');
    const absl::string_view item = absl::StripAsciiWhitespace(text.substr(0, comma));
    if (item.empty()) return Bad(spec, "a value is missing");
    PARAM_RETURN_IF_ERROR(AddValue(spec, item, &values));
    if (comma == absl::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  if (spec.role == ParamRole::kMeasure && values.size() != 1) {
    return Bad(spec, absl::StrCat("takes one value, not ", values.size()));
  }
  return values;
}

std::string ValueText(const Value& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return absl::StrCat(*number);
  if (const auto* number = std::get_if<double>(&value)) return FormatDouble(*number);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  const auto* text = std::get_if<std::string>(&value);
  return text == nullptr ? "" : *text;
}

Value DefaultValue(const ParamSpec& spec) {
  const absl::StatusOr<std::vector<Value>> values = ParseValues(spec, spec.fallback);
  return values.ok() && !values->empty() ? values->front() : Value();
}

std::int64_t IntParam(const Params& params, absl::string_view name, std::int64_t otherwise) {
  const auto* value = Find<std::int64_t>(params, name);
  return value == nullptr ? otherwise : *value;
}

double FloatParam(const Params& params, absl::string_view name, double otherwise) {
  const auto* value = Find<double>(params, name);
  return value == nullptr ? otherwise : *value;
}

bool BoolParam(const Params& params, absl::string_view name, bool otherwise) {
  const auto* value = Find<bool>(params, name);
  return value == nullptr ? otherwise : *value;
}

std::string TextParam(const Params& params, absl::string_view name, absl::string_view otherwise) {
  const auto* value = Find<std::string>(params, name);
  return value == nullptr ? std::string(otherwise) : *value;
}

}  // namespace param
