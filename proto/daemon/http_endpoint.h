#pragma once
// The one HTTP port of a daemon: /metrics, /healthz, /readyz.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <prometheus/metric_family.h>
#include "absl/status/statusor.h"

namespace param {

struct HttpEndpointOptions {
  std::string address;  // "127.0.0.1:7701"; port 0 takes any that is free; "[::1]:7701"
  // Called by a server thread for each scrape.
  std::function<std::vector<prometheus::MetricFamily>()> collect;
  // OK: ready. Else 503 with the message. Empty: always ready.
  std::function<absl::Status()> ready;
};

// Serves until it is destroyed; then no callback runs any more. GET and HEAD only; other paths are
// 404, other methods 405. Requests time out, connections are bounded.
class HttpEndpoint {
 public:
  // Errors name the address: INVALID_ARGUMENT, ALREADY_EXISTS when the port is taken.
  static absl::StatusOr<std::unique_ptr<HttpEndpoint>> Start(HttpEndpointOptions options);
  ~HttpEndpoint();
  HttpEndpoint(const HttpEndpoint&) = delete;
  HttpEndpoint& operator=(const HttpEndpoint&) = delete;

  // What it is bound to, with the real port.
  const std::string& address() const { return address_; }
  int port() const { return port_; }

 private:
  struct Server;
  HttpEndpoint(std::unique_ptr<Server> server, std::string address, int port);

  const std::unique_ptr<Server> server_;
  const std::string address_;
  const int port_;
};

}  // namespace param
