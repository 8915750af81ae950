#pragma once
// JobService: translates and nothing more.

#include "param/v1/job.grpc.pb.h"
#include "server/rpc/context.h"

namespace param {

class JobServiceImpl final : public v1::JobService::CallbackService {
 public:
  explicit JobServiceImpl(const RpcContext& context) : context_(context) {}

  grpc::ServerUnaryReactor* Submit(grpc::CallbackServerContext* call,
                                   const v1::SubmitRequest* request,
                                   v1::SubmitResponse* response) override;
  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* call, const v1::GetJobRequest* request,
                                v1::GetJobResponse* response) override;
  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* call,
                                 const v1::ListJobsRequest* request,
                                 v1::ListJobsResponse* response) override;
  grpc::ServerWriteReactor<v1::JobEvent>* Watch(grpc::CallbackServerContext* call,
                                                const v1::WatchRequest* request) override;
  grpc::ServerUnaryReactor* Cancel(grpc::CallbackServerContext* call,
                                   const v1::CancelRequest* request,
                                   v1::CancelResponse* response) override;
  grpc::ServerUnaryReactor* Logs(grpc::CallbackServerContext* call, const v1::LogsRequest* request,
                                 v1::LogsResponse* response) override;

 private:
  const RpcContext& context_;
};

}  // namespace param
