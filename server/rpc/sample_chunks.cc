#include "server/rpc/sample_chunks.h"

#include "proto/base/status.h"
#include "server/rpc/records.h"

namespace param {

absl::StatusOr<std::vector<v1::SampleBlob>> SampleChunks::Next() {
  PARAM_ASSIGN_OR_RETURN(const Job job, store_.GetJob(job_id_));
  if (attempt_ >= 0 && job.attempt != attempt_) {
    return absl::AbortedError(absl::StrCat("job ", job_id_, " began attempt ", job.attempt,
                                           " while the samples of attempt ", attempt_,
                                           " were read; ask again"));
  }
  attempt_ = job.attempt;
  std::vector<v1::SampleBlob> blobs;
  std::size_t bytes = 0;
  SamplePosition last = next_;
  bool is_full = false;
  const absl::Status status =
      store_.ReadSamples(job_id_, next_, [&](const SampleBlob& blob) -> absl::Status {
        const SamplePosition at{blob.case_index, blob.rank};
        if (bytes >= chunk_bytes_ && at != last) {
          is_full = true;
          next_ = at;
          return absl::CancelledError("the chunk is full");
        }
        last = at;
        blobs.push_back(SamplesToProto(blob));
        bytes += blobs.back().ByteSizeLong();
        return absl::OkStatus();
      });
  if (is_full) return blobs;
  PARAM_RETURN_IF_ERROR(status);
  is_over_ = true;
  return blobs;
}

}  // namespace param
