#include "server/rpc/result_service.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/rpc/records.h"
#include "server/rpc/sample_chunks.h"

namespace param {
namespace {

constexpr int kMaxListed = 10'000;

// Sends a job's samples, one blob in flight and one chunk in memory. The next chunk is read once
// this one was sent: a reader that is slow costs memory for one chunk and no thread.
class SamplesReactor final : public grpc::ServerWriteReactor<v1::SampleBlob> {
 public:
  SamplesReactor(const RpcContext& context, std::string job_id)
      : context_(context), chunks_(context.store, std::move(job_id)) {
    LoadOnReader();
  }

 private:
  void LoadOnReader() {
    const bool queued = context_.readers.Post([this] { Load(); });
    if (!queued) {
      Finish(ToGrpc(absl::ResourceExhaustedError("too many reads are waiting; try again")));
    }
  }
  void Load() {
    auto blobs = chunks_.Next();
    if (!blobs.ok()) {
      Finish(ToGrpc(blobs.status()));
      return;
    }
    blobs_ = *std::move(blobs);
    next_ = 0;
    Next();
  }
  void Next() {
    if (next_ < blobs_.size()) {
      StartWrite(&blobs_[next_++]);
    } else if (chunks_.is_over()) {
      Finish(grpc::Status::OK);
    } else {
      blobs_.clear();
      LoadOnReader();
    }
  }
  void OnWriteDone(bool ok) override {
    if (ok) {
      Next();
    } else {
      Finish(ToGrpc(absl::CancelledError("peer went away")));
    }
  }
  void OnDone() override { delete this; }

  const RpcContext& context_;
  SampleChunks chunks_;
  std::vector<v1::SampleBlob> blobs_;
  std::size_t next_ = 0;
};

}  // namespace

grpc::ServerUnaryReactor* ResultServiceImpl::List(grpc::CallbackServerContext* call,
                                                  const v1::ListResultsRequest* request,
                                                  v1::ListResultsResponse* response) {
  const UnaryCall unary(context_, "ResultService.List", call->DefaultReactor());
  unary.FinishOnReader([this, request, response]() -> absl::Status {
    ResultFilter filter;
    filter.benchmark = request->benchmark();
    filter.case_id = request->case_id();
    filter.node = request->node();
    filter.limit = request->limit() <= 0 ? 100 : std::min(request->limit(), kMaxListed);
    PARAM_ASSIGN_OR_RETURN(const auto rows, context_.store.ListResults(filter));
    for (const ResultRow& row : rows) {
      v1::ResultRow* out = response->add_results();
      out->set_job_id(row.job.job_id);
      out->set_job_name(row.job.spec.name);
      out->set_benchmark(row.job.spec.benchmark);
      out->set_backend(row.job.backend);
      out->mutable_nodes()->Assign(row.job.nodes.begin(), row.job.nodes.end());
      out->set_ranks(row.job.ranks);
      out->set_finished_ns(row.job.timeline.finished);
      *out->mutable_result() = CaseToProto(row.result);
    }
    return absl::OkStatus();
  });
  return unary.reactor();
}

grpc::ServerUnaryReactor* ResultServiceImpl::Import(grpc::CallbackServerContext* call,
                                                    const v1::ImportRequest* request,
                                                    v1::ImportResponse* response) {
  const UnaryCall unary(context_, "ResultService.Import", call->DefaultReactor());
  const auto finish = [unary, request, response](const absl::StatusOr<Job>& job) {
    if (job.ok()) response->set_job_id(job->job_id);
    const std::string object = job.ok()
                                   ? absl::StrCat("job ", job->job_id)
                                   : absl::StrCat("results of benchmark ", request->benchmark());
    unary.FinishChange(*request, object, job.status());
  };
  absl::StatusOr<ImportRequest> import = ImportFromProto(*request);
  if (!import.ok()) {
    finish(import.status());
    return unary.reactor();
  }
  context_.loop.Post([this, request, finish, import = *std::move(import)] {
    context_.coordinator.Import(request->principal().name(), request->request_id(), import, finish);
  });
  return unary.reactor();
}

grpc::ServerWriteReactor<v1::SampleBlob>* ResultServiceImpl::Samples(
    grpc::CallbackServerContext*, const v1::SamplesRequest* request) {
  return new SamplesReactor(context_, request->job_id());  // deletes itself in OnDone
}

}  // namespace param
