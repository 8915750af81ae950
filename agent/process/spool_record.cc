#include "agent/process/spool_record.h"

#include <array>
#include <concepts>
#include <cstring>

namespace param::agent {
namespace {

constexpr std::array<std::uint32_t, 256> MakeCrcTable() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0xEDB88320u : 0u);
    table[i] = value;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kCrcTable = MakeCrcTable();

template <std::unsigned_integral T>
void Put(std::string* out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

// False when `in` is too short.
template <std::unsigned_integral T>
bool Take(absl::string_view* in, T* value) {
  if (in->size() < sizeof(T)) return false;
  *value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    *value |= static_cast<T>(static_cast<T>(static_cast<unsigned char>((*in)[i])) << (8 * i));
  }
  in->remove_prefix(sizeof(T));
  return true;
}

}  // namespace

std::uint32_t Crc32(absl::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const char c : bytes) {
    crc = kCrcTable[(crc ^ static_cast<unsigned char>(c)) & 0xFFu] ^ (crc >> 8);
  }
  return ~crc;
}

std::string EncodeSpoolRecord(const RankEvent& event) {
  std::string body;
  body.reserve(event.line.size() + event.key.job_id.size() + 32);
  Put(&body, static_cast<std::uint32_t>(event.key.job_id.size()));
  body += event.key.job_id;
  Put(&body, static_cast<std::uint32_t>(event.key.attempt));
  Put(&body, static_cast<std::uint32_t>(event.rank));
  Put(&body, event.seq);
  Put(&body, static_cast<std::uint64_t>(event.time_ns));
  body += event.line;
  std::string record;
  record.reserve(body.size() + kSpoolHeaderBytes);
  Put(&record, static_cast<std::uint32_t>(body.size()));
  Put(&record, Crc32(body));
  record += body;
  return record;
}

std::optional<RankEvent> DecodeSpoolRecord(absl::string_view bytes, std::size_t* size) {
  std::uint32_t length = 0, crc = 0;
  if (!Take(&bytes, &length) || !Take(&bytes, &crc)) return std::nullopt;
  if (length > kMaxSpoolRecordBytes || length > bytes.size()) return std::nullopt;
  absl::string_view body = bytes.substr(0, length);
  if (Crc32(body) != crc) return std::nullopt;
  RankEvent event;
  std::uint32_t id_size = 0, attempt = 0, rank = 0;
  std::uint64_t time = 0;
  if (!Take(&body, &id_size) || id_size > body.size()) return std::nullopt;
  event.key.job_id = std::string(body.substr(0, id_size));
  body.remove_prefix(id_size);
  if (!Take(&body, &attempt) || !Take(&body, &rank) || !Take(&body, &event.seq) ||
      !Take(&body, &time)) {
    return std::nullopt;
  }
  event.key.attempt = static_cast<int>(attempt);
  event.rank = static_cast<int>(rank);
  event.time_ns = static_cast<std::int64_t>(time);
  event.line = std::string(body);
  *size = kSpoolHeaderBytes + length;
  return event;
}

}  // namespace param::agent
