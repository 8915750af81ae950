#pragma once
// The spool on disk: append-only segment files of checked records.
//
// A record is written before its event is sent. Flush() makes what was written so far durable with
// one fdatasync; it is called once per round of the event loop, so that all events of a round share
// it. Thus a killed agent loses nothing, a machine that loses power at most its last round, and
// with that the workers whose events they were. A segment file is deleted once all its events are
// acknowledged. A torn tail is what a crash in mid-write leaves: it is cut off at the next start.
//
// Memory is bounded by bytes, too. At max_index_bytes (many tiny events) an event is refused as at
// limit_bytes: its rank fails with RESOURCE_EXHAUSTED. At max_memory_bytes of ends that the disk
// did not take, a further end is refused and said in the log; see Spool::Append().

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "agent/core/spool.h"
#include "agent/core/spool_index.h"
#include "proto/base/handle.h"
#include "proto/base/log.h"

namespace param::agent {

// One thread at a time. One DiskSpool per folder.
class DiskSpool final : public Spool {
 public:
  static constexpr std::int64_t kMaxIndexBytes = 64 << 20;   // over a million events
  static constexpr std::int64_t kMaxMemoryBytes = 16 << 20;  // ends of ranks; at most 1 MiB each

  struct Options {
    std::string folder;  // made when missing
    std::int64_t limit_bytes = std::int64_t{1} << 30;
    std::int64_t segment_bytes = 8 << 20;
    std::int64_t max_index_bytes = kMaxIndexBytes;
    std::int64_t max_memory_bytes = kMaxMemoryBytes;
  };
  // Reads what an earlier agent left. `log` outlives the spool.
  static absl::StatusOr<std::unique_ptr<DiskSpool>> Open(Options options, const Log& log);

  absl::Status Append(const RankEvent& event, Importance importance) override;
  absl::StatusOr<Batch> Read(std::uint64_t from, std::size_t max_events,
                             std::size_t max_bytes) override;
  void Ack(const AckEntry& entry) override;
  void Drop(const AttemptKey& key) override;
  bool HasUnacked(const AttemptKey& key) const override { return index_.Has(key); }
  std::vector<AttemptKey> Attempts() const override { return index_.Attempts(); }
  std::uint64_t end() const override { return index_.end(); }
  std::int64_t bytes() const override { return disk_bytes_; }
  std::int64_t events() const override { return index_.events(); }
  std::string place() const override { return options_.folder; }

  absl::Status Flush();

 private:
  static constexpr std::uint64_t kInMemory = 0;  // "segment" of what the disk did not take

  struct Segment {
    std::string path;
    Fd fd;
    std::int64_t size = 0;
    std::int64_t live = 0;  // events not acknowledged
  };
  DiskSpool(Options options, const Log& log) : options_(std::move(options)), log_(log) {}
  absl::Status Recover();
  absl::Status RecoverSegment(std::uint64_t number, const std::string& path);
  absl::StatusOr<Segment*> Active();
  absl::Status Write(const RankEvent& event);
  absl::StatusOr<RankEvent> ReadEvent(std::uint64_t position);
  void Forget(std::uint64_t position, const SpoolIndex::Entry& entry);
  void DropIfEmpty(std::uint64_t number);

  const Options options_;
  const Log& log_;
  SpoolIndex index_;
  std::map<std::uint64_t, Segment> segments_;  // by number, from 1
  std::uint64_t active_ = 0;                   // 0: none yet
  std::uint64_t next_segment_ = 1;
  std::int64_t disk_bytes_ = 0;
  bool is_dirty_ = false;
  std::map<std::uint64_t, RankEvent> in_memory_;  // by position
  std::int64_t in_memory_bytes_ = 0;
};

}  // namespace param::agent
