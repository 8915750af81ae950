#include "proto/convert/status.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace param {
namespace {

// gRPC limits all metadata of a call to 8 KiB by default.
constexpr std::size_t kMaxMessage = 4096;

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  std::string message(status.message().substr(0, kMaxMessage));
  if (status.message().size() > kMaxMessage) absl::StrAppend(&message, " (cut)");
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message);
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const int code = static_cast<int>(status.error_code());
  const bool known = code >= static_cast<int>(absl::StatusCode::kCancelled) &&
                     code <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  return absl::Status(known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown,
                      status.error_message());
}

}  // namespace param
