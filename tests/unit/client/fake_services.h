#pragma once
// A coordinator in this process: the generated services with answers that a test scripts.

#include <grpcpp/grpcpp.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "param/v1/job.grpc.pb.h"
#include "param/v1/node.grpc.pb.h"
#include "param/v1/result.grpc.pb.h"
#include "proto/base/sync.h"

namespace param {

// What the fake does; set before the call that needs it, read afterwards. Handlers run on gRPC's
// threads, one call at a time in these tests.
struct FakeScript {
  // One entry per call of Watch: events, then the status the stream ends with.
  struct Stream {
    std::vector<v1::JobEvent> events;
    grpc::Status end = grpc::Status::OK;
    bool hold = false;  // stays open until the client cancels
  };
  std::deque<Stream> streams;
  std::vector<v1::WatchRequest> watches;
  v1::SubmitRequest submitted;
  grpc::Status submit_status = grpc::Status::OK;
  v1::Job submit_job;
  v1::GetJobResponse get_response;
  grpc::Status get_status = grpc::Status::OK;
  std::vector<v1::Job> jobs;
  v1::CancelRequest cancelled;
  std::vector<v1::LogRow> logs;
  std::vector<v1::Node> nodes;
  v1::LabelRequest labelled;
  v1::DrainRequest drained;
  v1::InfoResponse info;
  std::vector<v1::ResultRow> results;
  std::vector<v1::SampleBlob> samples;
  v1::ImportRequest imported;
  v1::ImportResponse import_response;
  std::function<void()> on_hold;  // called once a held stream has sent its events
};

class FakeJobs final : public v1::JobService::Service {
 public:
  explicit FakeJobs(FakeScript& script) : script_(script) {}
  grpc::Status Submit(grpc::ServerContext*, const v1::SubmitRequest* request,
                      v1::SubmitResponse* response) override {
    script_.submitted = *request;
    *response->mutable_job() = script_.submit_job;
    return script_.submit_status;
  }
  grpc::Status Get(grpc::ServerContext*, const v1::GetJobRequest*,
                   v1::GetJobResponse* response) override {
    *response = script_.get_response;
    return script_.get_status;
  }
  grpc::Status List(grpc::ServerContext*, const v1::ListJobsRequest*,
                    v1::ListJobsResponse* response) override {
    for (const v1::Job& job : script_.jobs) *response->add_jobs() = job;
    return grpc::Status::OK;
  }
  grpc::Status Watch(grpc::ServerContext* context, const v1::WatchRequest* request,
                     grpc::ServerWriter<v1::JobEvent>* writer) override {
    script_.watches.push_back(*request);
    if (script_.streams.empty()) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "no script");
    const FakeScript::Stream stream = script_.streams.front();
    script_.streams.pop_front();
    for (const v1::JobEvent& event : stream.events) writer->Write(event);
    if (stream.hold) {
      if (script_.on_hold) script_.on_hold();
      Mutex mu;
      CondVar never;
      MutexLock lock(mu);
      while (!context->IsCancelled()) never.WaitFor(mu, std::chrono::milliseconds(5));
    }
    return stream.end;
  }
  grpc::Status Cancel(grpc::ServerContext*, const v1::CancelRequest* request,
                      v1::CancelResponse* response) override {
    script_.cancelled = *request;
    *response->mutable_job() = script_.get_response.job();
    return script_.get_status;
  }
  grpc::Status Logs(grpc::ServerContext*, const v1::LogsRequest*,
                    v1::LogsResponse* response) override {
    for (const v1::LogRow& row : script_.logs) *response->add_lines() = row;
    return grpc::Status::OK;
  }

 private:
  FakeScript& script_;
};

class FakeNodes final : public v1::NodeService::Service {
 public:
  explicit FakeNodes(FakeScript& script) : script_(script) {}
  grpc::Status List(grpc::ServerContext*, const v1::ListNodesRequest*,
                    v1::ListNodesResponse* response) override {
    for (const v1::Node& node : script_.nodes) *response->add_nodes() = node;
    return grpc::Status::OK;
  }
  grpc::Status Drain(grpc::ServerContext*, const v1::DrainRequest* request,
                     v1::NodeResponse* response) override {
    script_.drained = *request;
    *response->mutable_node() = script_.nodes.at(0);
    return grpc::Status::OK;
  }
  grpc::Status Label(grpc::ServerContext*, const v1::LabelRequest* request,
                     v1::NodeResponse* response) override {
    script_.labelled = *request;
    *response->mutable_node() = script_.nodes.at(0);
    return grpc::Status::OK;
  }

 private:
  FakeScript& script_;
};

class FakeFleet final : public v1::FleetService::Service {
 public:
  explicit FakeFleet(FakeScript& script) : script_(script) {}
  grpc::Status Info(grpc::ServerContext*, const v1::InfoRequest*,
                    v1::InfoResponse* response) override {
    *response = script_.info;
    return grpc::Status::OK;
  }

 private:
  FakeScript& script_;
};

class FakeResults final : public v1::ResultService::Service {
 public:
  explicit FakeResults(FakeScript& script) : script_(script) {}
  grpc::Status List(grpc::ServerContext*, const v1::ListResultsRequest*,
                    v1::ListResultsResponse* response) override {
    for (const v1::ResultRow& row : script_.results) *response->add_results() = row;
    return grpc::Status::OK;
  }
  grpc::Status Samples(grpc::ServerContext*, const v1::SamplesRequest*,
                       grpc::ServerWriter<v1::SampleBlob>* writer) override {
    for (const v1::SampleBlob& blob : script_.samples) writer->Write(blob);
    return grpc::Status::OK;
  }
  grpc::Status Import(grpc::ServerContext*, const v1::ImportRequest* request,
                      v1::ImportResponse* response) override {
    script_.imported = *request;
    *response = script_.import_response;
    return grpc::Status::OK;
  }

 private:
  FakeScript& script_;
};

// Listens on a free port of loopback for its life.
class FakeCoordinator {
 public:
  FakeCoordinator() : jobs_(script), nodes_(script), fleet_(script), results_(script) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    for (grpc::Service* service :
         std::initializer_list<grpc::Service*>{&jobs_, &nodes_, &fleet_, &results_}) {
      builder.RegisterService(service);
    }
    server_ = builder.BuildAndStart();
  }
  FakeCoordinator(const FakeCoordinator&) = delete;
  FakeCoordinator& operator=(const FakeCoordinator&) = delete;
  ~FakeCoordinator() { server_->Shutdown(std::chrono::system_clock::now()); }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

  FakeScript script;

 private:
  FakeJobs jobs_;
  FakeNodes nodes_;
  FakeFleet fleet_;
  FakeResults results_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// Events in the order of a job's life.
inline v1::JobEvent JobEventOf(std::uint64_t seq, const v1::Job& job) {
  v1::JobEvent event;
  event.set_seq(seq);
  *event.mutable_job() = job;
  return event;
}
inline v1::JobEvent CaseEventOf(std::uint64_t seq, const v1::CaseResult& result) {
  v1::JobEvent event;
  event.set_seq(seq);
  *event.mutable_case_done() = result;
  return event;
}

}  // namespace param
