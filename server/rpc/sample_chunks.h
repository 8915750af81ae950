#pragma once
// A job's samples in pieces of bounded size, for streams whose reader may be slow.

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "param/v1/result.pb.h"
#include "server/core/store.h"

namespace param {

// Not thread safe. Nothing of the store is held between two calls: no transaction, no samples.
class SampleChunks {
 public:
  // A chunk ends with the rank that reaches it, so that it is at most this and one rank's samples
  // of one case.
  static constexpr std::size_t kChunkBytes = 4 << 20;

  // `store` outlives this.
  SampleChunks(Store& store, std::string job_id, std::size_t chunk_bytes = kChunkBytes)
      : store_(store), job_id_(std::move(job_id)), chunk_bytes_(chunk_bytes) {}

  // The next blobs, in the store's order. NOT_FOUND: no such job. ABORTED: the job began a new
  // attempt since the first chunk, whose samples do not belong to those already read.
  absl::StatusOr<std::vector<v1::SampleBlob>> Next();
  // Nothing is left: Next() need not be called.
  bool is_over() const { return is_over_; }

 private:
  Store& store_;
  const std::string job_id_;
  const std::size_t chunk_bytes_;
  SamplePosition next_;
  int attempt_ = -1;  // of the first chunk
  bool is_over_ = false;
};

}  // namespace param
