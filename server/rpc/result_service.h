#pragma once
// ResultService: results and samples from the store.

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

 private:
  const RpcContext& context_;
};

}  // namespace param
