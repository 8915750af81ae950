#include "proto/line/launch.h"

#include "proto/line/fields.h"

namespace param::line {
namespace {

constexpr ShapeLimits kShape = {.depth = 2, .separators = 16 << 10};
constexpr std::size_t kMaxWordBytes = 128 << 10;  // what the kernel takes in one word

Json WordsToJson(const std::vector<std::string>& words) {
  Json array = Json::array();
  for (const std::string& word : words) array.push_back(ToBase64(word));
  return array;
}

std::string Line(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string Encode(const LaunchHello& hello) {
  return Line({{"token", hello.token},
               {"rank", hello.rank},
               {"env", WordsToJson(hello.env)},
               {"host", hello.host},
               {"args", WordsToJson(hello.args)}});
}

std::string Encode(const LaunchEnd& end) {
  return Line({{"exit_code", end.exit_code},
               {"signal", end.signal},
               {"text", Clip(end.text, kMaxTextBytes)}});
}

absl::StatusOr<LaunchHello> DecodeLaunchHello(absl::string_view line) {
  const absl::StatusOr<Json> json = ParseObject(line, kShape);
  if (!json.ok()) return json.status();
  Fields fields(*json);
  LaunchHello hello{.token = fields.Text("token", kMaxNameBytes),
                    .rank = fields.Int32("rank", -1),
                    .env = fields.BytesList("env", kMaxWordBytes),
                    .host = fields.Text("host", kMaxNameBytes),
                    .args = fields.BytesList("args", kMaxWordBytes)};
  for (const std::string& entry : hello.env) {
    const std::size_t equals = entry.find('=');
    const bool is_variable =
        equals != std::string::npos && equals > 0 && entry.find('\0') == std::string::npos;
    if (!is_variable) fields.Fail("env", "is not a list of K=V");
  }
  if (!fields.status().ok()) return fields.status();
  return hello;
}

absl::StatusOr<LaunchEnd> DecodeLaunchEnd(absl::string_view line) {
  const absl::StatusOr<Json> json = ParseObject(line, kShape);
  if (!json.ok()) return json.status();
  Fields fields(*json);
  LaunchEnd end{.exit_code = fields.Int32("exit_code", 0, 255),
                .signal = fields.Int32("signal", 0, 64),
                .text = fields.Text("text", kMaxTextBytes)};
  if (!fields.status().ok()) return fields.status();
  return end;
}

}  // namespace param::line
