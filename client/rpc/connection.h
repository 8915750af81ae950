#pragma once
// A connection to the coordinator: every call has a deadline, every error says where it went.

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/rpc/address.h"
#include "param/v1/job.pb.h"
#include "param/v1/node.pb.h"
#include "param/v1/result.pb.h"

namespace param {

struct ConnectionOptions {
  absl::Duration call_deadline = absl::Seconds(10);
  absl::Duration bulk_deadline = absl::Minutes(5);   // samples and large lists
  absl::Duration reconnect_for = absl::Seconds(60);  // watching, without any event
};

// How watching a job ended.
enum class WatchEnd {
  kEnded,        // the coordinator closed the stream: the job ended
  kInterrupted,  // `stop` said so
};

struct WatchCallbacks {
  std::function<void(const v1::JobEvent&)> on_event;
  // The connection was lost and is tried again, or is back.
  std::function<void(const std::string&)> on_note;
  // Asked every 50 ms and after each event.
  std::function<bool()> stop;
  // Called every 50 ms, for progress.
  std::function<void()> on_tick;
};

// Nothing is sent before the first call. Not thread safe. Errors carry the coordinator's code and
// message; UNAVAILABLE and DEADLINE_EXCEEDED name the address, where it came from and what to do.
class Connection {
 public:
  Connection(Address address, const ConnectionOptions& options);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const Address& address() const { return address_; }

  absl::StatusOr<v1::SubmitResponse> Submit(const v1::SubmitRequest& request);
  absl::StatusOr<v1::GetJobResponse> GetJob(const v1::GetJobRequest& request);
  absl::StatusOr<v1::ListJobsResponse> ListJobs(const v1::ListJobsRequest& request);
  absl::StatusOr<v1::CancelResponse> Cancel(const v1::CancelRequest& request);
  absl::StatusOr<v1::LogsResponse> Logs(const v1::LogsRequest& request);
  absl::StatusOr<v1::ListNodesResponse> ListNodes(const v1::ListNodesRequest& request);
  absl::StatusOr<v1::NodeResponse> Drain(const v1::DrainRequest& request);
  absl::StatusOr<v1::NodeResponse> Resume(const v1::ResumeRequest& request);
  absl::StatusOr<v1::NodeResponse> Label(const v1::LabelRequest& request);
  absl::StatusOr<v1::InfoResponse> Info();
  absl::StatusOr<v1::ListResultsResponse> ListResults(const v1::ListResultsRequest& request);
  absl::StatusOr<v1::ImportResponse> Import(const v1::ImportRequest& request);

  // Calls `each` for every blob of the job.
  absl::Status Samples(const std::string& job_id,
                       const std::function<void(const v1::SampleBlob&)>& each);

  // Blocks until the job ends or `stop` says so. A lost connection, a restarted coordinator and a
  // watcher that was too slow are resumed after the last event seen (or from the start: the same
  // event may come again), for at most `reconnect_for` without an event; then the error is
  // UNAVAILABLE. Other errors end it at once.
  absl::StatusOr<WatchEnd> Watch(const std::string& job_id, const WatchCallbacks& callbacks);

 private:
  struct Channel;  // keeps gRPC out of this header

  // Adds the address and what to do to errors of the transport.
  absl::Status Explain(const absl::Status& status, absl::Duration deadline) const;
  template <typename Response, typename Stub, typename Method, typename Request>
  absl::StatusOr<Response> Call(Stub& stub, Method method, const Request& request,
                                absl::Duration deadline);

  const Address address_;
  const ConnectionOptions options_;
  const std::unique_ptr<Channel> channel_;
};

}  // namespace param
