#include "client/rpc/connection.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/rpc/channel.h"
#include "proto/convert/status.h"

namespace param {
namespace {

constexpr int kMaxMessageBytes = 512 << 20;  // a job of 10,000 cases on many ranks

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // proxy variables are meant for the web
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  // In spite of its name: how long a connection may take to come about. Longer than a call's
  // deadline, which is what ends the wait for a slow coordinator; a refusal ends it at once.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 20'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  // A coordinator that vanished without closing is noticed while a job is watched.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

// gRPC wraps the cause ("Connection refused") in a sentence per layer: the cause is the last part.
std::string Cause(absl::string_view message) {
  constexpr absl::string_view kWrapped = "failed to connect to all addresses";
  const std::size_t last = message.rfind(": ");
  if (!absl::StartsWith(message, kWrapped) || last == absl::string_view::npos) {
    return std::string(message);
  }
  return std::string(message.substr(last + 2));
}

}  // namespace

Connection::Channel::Channel(const std::string& target)
    : channel(MakeChannel(target)),
      jobs(channel),
      nodes(channel),
      fleet(channel),
      results(channel) {}

Connection::Connection(Address address, const ConnectionOptions& options)
    : address_(std::move(address)),
      options_(options),
      channel_(std::make_unique<Channel>(address_.target)) {}

Connection::~Connection() = default;

absl::Status Connection::Explain(const absl::Status& status, absl::Duration deadline) const {
  const std::string where =
      absl::StrCat(address_.target, address_.origin == "default"
                                        ? " (the default)"
                                        : absl::StrCat(" (from ", address_.origin, ")"));
  if (absl::IsUnavailable(status)) {
    return absl::UnavailableError(absl::StrCat(
        "no coordinator answers at ", where, ": ", Cause(status.message()),
        "; start one on this machine with \"paramctl up\", or say where it is with --server"));
  }
  if (absl::IsDeadlineExceeded(status)) {
    return absl::DeadlineExceededError(absl::StrCat(
        "the coordinator at ", where, " did not answer within ", absl::FormatDuration(deadline)));
  }
  if (absl::IsUnimplemented(status) && status.message().empty()) {
    return absl::UnimplementedError(absl::StrCat(
        "the coordinator at ", where, " is older than this paramctl and does not know this call"));
  }
  return status;
}

template <typename Response, typename Stub, typename Method, typename Request>
absl::StatusOr<Response> Connection::Call(Stub& stub, Method method, const Request& request,
                                          absl::Duration deadline) {
  grpc::ClientContext context;
  context.set_deadline(After(deadline));
  Response response;
  const grpc::Status status = (stub.*method)(&context, request, &response);
  if (!status.ok()) return Explain(FromGrpc(status), deadline);
  return response;
}

absl::StatusOr<v1::SubmitResponse> Connection::Submit(const v1::SubmitRequest& request) {
  return Call<v1::SubmitResponse>(channel_->jobs, &v1::JobService::Stub::Submit, request,
                                  options_.call_deadline);
}
absl::StatusOr<v1::GetJobResponse> Connection::GetJob(const v1::GetJobRequest& request) {
  return Call<v1::GetJobResponse>(channel_->jobs, &v1::JobService::Stub::Get, request,
                                  options_.bulk_deadline);
}
absl::StatusOr<v1::ListJobsResponse> Connection::ListJobs(const v1::ListJobsRequest& request) {
  return Call<v1::ListJobsResponse>(channel_->jobs, &v1::JobService::Stub::List, request,
                                    options_.call_deadline);
}
absl::StatusOr<v1::CancelResponse> Connection::Cancel(const v1::CancelRequest& request) {
  return Call<v1::CancelResponse>(channel_->jobs, &v1::JobService::Stub::Cancel, request,
                                  options_.call_deadline);
}
absl::StatusOr<v1::LogsResponse> Connection::Logs(const v1::LogsRequest& request) {
  return Call<v1::LogsResponse>(channel_->jobs, &v1::JobService::Stub::Logs, request,
                                options_.call_deadline);
}
absl::StatusOr<v1::ListNodesResponse> Connection::ListNodes(const v1::ListNodesRequest& request) {
  return Call<v1::ListNodesResponse>(channel_->nodes, &v1::NodeService::Stub::List, request,
                                     options_.call_deadline);
}
absl::StatusOr<v1::NodeResponse> Connection::Drain(const v1::DrainRequest& request) {
  return Call<v1::NodeResponse>(channel_->nodes, &v1::NodeService::Stub::Drain, request,
                                options_.call_deadline);
}
absl::StatusOr<v1::NodeResponse> Connection::Resume(const v1::ResumeRequest& request) {
  return Call<v1::NodeResponse>(channel_->nodes, &v1::NodeService::Stub::Resume, request,
                                options_.call_deadline);
}
absl::StatusOr<v1::NodeResponse> Connection::Label(const v1::LabelRequest& request) {
  return Call<v1::NodeResponse>(channel_->nodes, &v1::NodeService::Stub::Label, request,
                                options_.call_deadline);
}
absl::StatusOr<v1::InfoResponse> Connection::Info() {
  return Call<v1::InfoResponse>(channel_->fleet, &v1::FleetService::Stub::Info, v1::InfoRequest(),
                                options_.call_deadline);
}
absl::StatusOr<v1::ListResultsResponse> Connection::ListResults(
    const v1::ListResultsRequest& request) {
  return Call<v1::ListResultsResponse>(channel_->results, &v1::ResultService::Stub::List, request,
                                       options_.bulk_deadline);
}

absl::StatusOr<v1::ImportResponse> Connection::Import(const v1::ImportRequest& request) {
  return Call<v1::ImportResponse>(channel_->results, &v1::ResultService::Stub::Import, request,
                                  options_.bulk_deadline);
}

absl::Status Connection::Samples(const std::string& job_id,
                                 const std::function<void(const v1::SampleBlob&)>& each) {
  grpc::ClientContext context;
  context.set_deadline(After(options_.bulk_deadline));
  v1::SamplesRequest request;
  request.set_job_id(job_id);
  const auto reader = channel_->results.Samples(&context, request);
  v1::SampleBlob blob;
  while (reader->Read(&blob)) each(blob);
  return Explain(FromGrpc(reader->Finish()), options_.bulk_deadline);
}

}  // namespace param
