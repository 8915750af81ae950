// The agent's reading of a worker's socket: any bytes, in any pieces.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "proto/line/messages.h"

namespace {

using param::line::DecodeFromAgent;
using param::line::DecodeFromWorker;
using param::line::Encode;
using param::line::LineReader;

void Expect(bool holds) {
  if (!holds) std::abort();
}

void DecodeBothWays(const std::string& line) {
  if (auto message = DecodeFromWorker(line); message.ok()) {
    // What was accepted is accepted again, and means the same.
    const std::string again = Encode(*message);
    const auto repeated = DecodeFromWorker(again);
    Expect(repeated.ok());
    Expect(Encode(*repeated) == again);
  }
  if (auto message = DecodeFromAgent(line); message.ok()) {
    const std::string again = Encode(*message);
    const auto repeated = DecodeFromAgent(again);
    Expect(repeated.ok());
    Expect(Encode(*repeated) == again);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  DecodeBothWays(input);

  // The same bytes in pieces through a reader with a small limit give the lines of the text.
  constexpr std::size_t kLimit = 4096;
  const std::size_t piece = size == 0 ? 1 : 1 + data[0] % 64;
  LineReader reader(kLimit);
  std::size_t given = 0;
  std::string line;
  bool alive = true;
  for (std::size_t at = 0; at < size && alive; at += piece) {
    alive = reader.Feed(absl::string_view(input).substr(at, piece)).ok();
    while (reader.Next(&line)) {
      Expect(line.size() <= kLimit);
      Expect(input.compare(given, line.size(), line) == 0);
      given += line.size() + 1;
      DecodeBothWays(line);
    }
  }
  const std::size_t last = input.rfind('\n');
  if (alive) Expect(given == (last == std::string::npos ? 0 : last + 1));
  return 0;
}
