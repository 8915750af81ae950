#include "agent/process/disk_spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "agent/process/spool_record.h"
#include "proto/base/file.h"
#include "proto/base/status.h"
#include "proto/base/text.h"

namespace param::agent {
namespace {

constexpr absl::string_view kSuffix = ".seg";

std::string SegmentPath(const std::string& folder, std::uint64_t number) {
  return absl::StrCat(folder, "/", absl::StrFormat("%012d", number), kSuffix);
}

}  // namespace

absl::StatusOr<std::unique_ptr<DiskSpool>> DiskSpool::Open(Options options, const Log& log) {
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  if (error) {
    return absl::InternalError(absl::StrCat("cannot make ", options.folder, ": ", error.message()));
  }
  std::unique_ptr<DiskSpool> spool(new DiskSpool(std::move(options), log));
  PARAM_RETURN_IF_ERROR(spool->Recover(), "spool ", spool->options_.folder);
  return spool;
}

absl::Status DiskSpool::Recover() {
  std::error_code error;
  std::vector<std::uint64_t> numbers;
  for (const auto& entry : std::filesystem::directory_iterator(options_.folder, error)) {
    const std::string name = entry.path().filename().string();
    absl::string_view stem = name;
    std::uint64_t number = 0;
    if (!absl::ConsumeSuffix(&stem, kSuffix) || !absl::SimpleAtoi(stem, &number) || number == 0) {
      continue;
    }
    numbers.push_back(number);
  }
  if (error) return absl::InternalError(error.message());
  std::sort(numbers.begin(), numbers.end());
  for (const std::uint64_t number : numbers) {
    PARAM_RETURN_IF_ERROR(RecoverSegment(number, SegmentPath(options_.folder, number)));
    next_segment_ = number + 1;
  }
  if (index_.events() > 0) {
    log_.Info("found results that were not taken over", {F("events", index_.events())});
  }
  return absl::OkStatus();
}

absl::Status DiskSpool::RecoverSegment(std::uint64_t number, const std::string& path) {
  PARAM_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  Segment segment;
  segment.path = path;
  segment.fd = Fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!segment.fd) return ErrnoStatus(errno, absl::StrCat("open ", path));
  absl::string_view rest = bytes;
  while (!rest.empty()) {
    std::size_t size = 0;
    const std::optional<RankEvent> event = DecodeSpoolRecord(rest, &size);
    if (!event.has_value()) break;
    index_.Add({event->key, event->rank}, {.seq = event->seq,
                                           .segment = number,
                                           .offset = segment.size,
                                           .size = static_cast<std::int64_t>(size)});
    segment.size += static_cast<std::int64_t>(size);
    ++segment.live;
    rest.remove_prefix(size);
  }
  if (!rest.empty()) {
    log_.Warn("cut a torn tail off a spool segment", {F("path", path), F("bytes", rest.size())});
    if (::ftruncate(segment.fd.get(), segment.size) != 0) {
      return ErrnoStatus(errno, absl::StrCat("truncate ", path));
    }
  }
  disk_bytes_ += segment.size;
  segments_.emplace(number, std::move(segment));
  DropIfEmpty(number);
  return absl::OkStatus();
}

absl::StatusOr<DiskSpool::Segment*> DiskSpool::Active() {
  const auto active = segments_.find(active_);
  if (active != segments_.end() && active->second.size < options_.segment_bytes) {
    return &active->second;
  }
  PARAM_RETURN_IF_ERROR(Flush());  // of the one that is full
  const std::uint64_t number = next_segment_;
  Segment segment;
  segment.path = SegmentPath(options_.folder, number);
  segment.fd = Fd(::open(segment.path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!segment.fd) return ErrnoStatus(errno, absl::StrCat("open ", segment.path));
  const std::uint64_t full = std::exchange(active_, number);
  ++next_segment_;
  Segment* const made = &segments_.emplace(number, std::move(segment)).first->second;
  DropIfEmpty(full);
  return made;
}

absl::Status DiskSpool::Write(const RankEvent& event) {
  const std::string record = EncodeSpoolRecord(event);
  PARAM_ASSIGN_OR_RETURN(Segment* const segment, Active());
  std::size_t done = 0;
  while (done < record.size()) {
    const ssize_t wrote = ::pwrite(segment->fd.get(), record.data() + done, record.size() - done,
                                   segment->size + static_cast<std::int64_t>(done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      const absl::Status status = ErrnoStatus(wrote < 0 ? errno : ENOSPC, "write");
      // The rest of a half-written record must not be taken for one.
      if (::ftruncate(segment->fd.get(), segment->size) != 0) {
        log_.Error("cannot cut a half-written record off", {F("path", segment->path)});
      }
      return absl::ResourceExhaustedError(
          absl::StrCat("the spool in ", place(), " cannot grow: ", status.message()));
    }
    done += static_cast<std::size_t>(wrote);
  }
  const std::int64_t size = static_cast<std::int64_t>(record.size());
  index_.Add({event.key, event.rank},
             {.seq = event.seq, .segment = active_, .offset = segment->size, .size = size});
  segment->size += size;
  ++segment->live;
  disk_bytes_ += size;
  is_dirty_ = true;
  return absl::OkStatus();
}

absl::Status DiskSpool::Append(const RankEvent& event, Importance importance) {
  absl::Status written;
  if (importance == Importance::kEvent && disk_bytes_ >= options_.limit_bytes) {
    written = absl::ResourceExhaustedError(absl::StrCat(
        "the spool in ", place(), " reached its limit of ", FormatBytes(options_.limit_bytes)));
  } else if (importance == Importance::kEvent &&
             index_.memory_bytes() >= options_.max_index_bytes) {
    written = absl::ResourceExhaustedError(absl::StrCat(
        "the spool in ", place(), " holds ", index_.events(), " events; its index reached ",
        FormatBytes(options_.max_index_bytes), " of memory"));
  } else {
    written = Write(event);
  }
  if (written.ok() || importance == Importance::kEvent) return written;
  const auto size = static_cast<std::int64_t>(event.line.size());
  if (in_memory_bytes_ + size > options_.max_memory_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(written.message(),
                                                     "; and ends of ranks already take ",
                                                     FormatBytes(in_memory_bytes_), " of memory"));
  }
  log_.Error("the end of a rank is kept in memory only", {F("reason", written.message())});
  const std::uint64_t position =
      index_.Add({event.key, event.rank}, {.seq = event.seq, .segment = kInMemory});
  in_memory_.emplace(position, event);
  in_memory_bytes_ += size;
  return absl::OkStatus();
}

absl::StatusOr<RankEvent> DiskSpool::ReadEvent(std::uint64_t position) {
  const SpoolIndex::Entry& entry = index_.At(position);
  if (entry.segment == kInMemory) return in_memory_.at(position);
  const Segment& segment = segments_.at(entry.segment);
  std::string bytes(static_cast<std::size_t>(entry.size), '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::pread(segment.fd.get(), bytes.data() + done, bytes.size() - done,
                                entry.offset + static_cast<std::int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return ErrnoStatus(got < 0 ? errno : EIO, absl::StrCat("read ", segment.path));
    done += static_cast<std::size_t>(got);
  }
  std::size_t size = 0;
  std::optional<RankEvent> event = DecodeSpoolRecord(bytes, &size);
  if (!event.has_value()) {
    return absl::DataLossError(absl::StrCat("damaged record in ", segment.path));
  }
  return *std::move(event);
}

absl::StatusOr<Spool::Batch> DiskSpool::Read(std::uint64_t from, std::size_t max_events,
                                             std::size_t max_bytes) {
  Batch batch;
  std::size_t bytes = 0;
  std::uint64_t position = index_.Next(from);
  while (position < index_.end() && batch.events.size() < max_events && bytes < max_bytes) {
    PARAM_ASSIGN_OR_RETURN(RankEvent event, ReadEvent(position));
    bytes += event.line.size();
    batch.events.push_back(std::move(event));
    position = index_.Next(position + 1);
  }
  batch.next = position;
  return batch;
}

void DiskSpool::Forget(std::uint64_t position, const SpoolIndex::Entry& entry) {
  if (entry.segment == kInMemory) {
    const auto kept = in_memory_.find(position);
    in_memory_bytes_ -= static_cast<std::int64_t>(kept->second.line.size());
    in_memory_.erase(kept);
    return;
  }
  --segments_.at(entry.segment).live;
  DropIfEmpty(entry.segment);
}

// The active one too: a later event starts a new file.
void DiskSpool::DropIfEmpty(std::uint64_t number) {
  const auto segment = segments_.find(number);
  if (segment == segments_.end() || segment->second.live > 0) return;
  disk_bytes_ -= segment->second.size;
  if (number == active_) {
    // Emptied in place: cheaper than a new file for each short job.
    if (::ftruncate(segment->second.fd.get(), 0) == 0) {
      segment->second.size = 0;
      return;
    }
    active_ = 0;
  }
  std::error_code ignored;  // replays are harmless
  std::filesystem::remove(segment->second.path, ignored);
  segments_.erase(segment);
}

void DiskSpool::Ack(const AckEntry& entry) {
  index_.Ack(
      {entry.key, entry.rank}, entry.seq,
      [this](std::uint64_t position, const SpoolIndex::Entry& each) { Forget(position, each); });
}

void DiskSpool::Drop(const AttemptKey& key) {
  index_.Drop(key, [this](std::uint64_t position, const SpoolIndex::Entry& each) {
    Forget(position, each);
  });
}

absl::Status DiskSpool::Flush() {
  if (!std::exchange(is_dirty_, false)) return absl::OkStatus();
  const auto active = segments_.find(active_);
  if (active == segments_.end() || active->second.size == 0) return absl::OkStatus();
  if (::fdatasync(active->second.fd.get()) != 0) {
    return ErrnoStatus(errno, absl::StrCat("fdatasync ", active->second.path));
  }
  return absl::OkStatus();
}

}  // namespace param::agent
