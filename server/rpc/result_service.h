#pragma once
// ResultService: results and samples from the store, and results of other tools into it.

#include "param/v1/result.grpc.pb.h"
#include "server/rpc/context.h"

namespace param {

class ResultServiceImpl final : public v1::ResultService::CallbackService {
 public:
  explicit ResultServiceImpl(const RpcContext& context) : context_(context) {}
  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* call,
                                 const v1::ListResultsRequest* request,
                                 v1::ListResultsResponse* response) override;
  grpc::ServerWriteReactor<v1::SampleBlob>* Samples(grpc::CallbackServerContext* call,
                                                    const v1::SamplesRequest* request) override;
  grpc::ServerUnaryReactor* Import(grpc::CallbackServerContext* call,
                                   const v1::ImportRequest* request,
                                   v1::ImportResponse* response) override;

 private:
  const RpcContext& context_;
};

}  // namespace param
