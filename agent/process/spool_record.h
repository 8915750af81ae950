#pragma once
// One event as bytes in a spool segment: length, CRC-32, then the event; little-endian.

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "agent/core/messages.h"

namespace param::agent {

inline constexpr std::size_t kSpoolHeaderBytes = 8;
inline constexpr std::size_t kMaxSpoolRecordBytes = 4 << 20;

std::string EncodeSpoolRecord(const RankEvent& event);

// The record at the front of `bytes`, and its whole size; nothing when it is torn or damaged.
std::optional<RankEvent> DecodeSpoolRecord(absl::string_view bytes, std::size_t* size);

// The usual CRC-32 (IEEE 802.3).
std::uint32_t Crc32(absl::string_view bytes);

}  // namespace param::agent
