#include "proto/daemon/http_endpoint.h"

#include <CivetServer.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <prometheus/text_serializer.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/handle.h"
#include "proto/base/status.h"

namespace param {
namespace {

struct HostPort {
  std::string host;  // without brackets
  int port = 0;
  bool is_v6 = false;
};

absl::StatusOr<HostPort> ParseAddress(absl::string_view address) {
  HostPort out;
  const std::size_t colon = address.rfind(':');
  const bool has_port = colon != absl::string_view::npos &&
                        absl::SimpleAtoi(address.substr(colon + 1), &out.port) && out.port >= 0 &&
                        out.port <= 65535;
  if (has_port) {
    absl::string_view host = address.substr(0, colon);
    out.is_v6 = absl::ConsumePrefix(&host, "[") && absl::ConsumeSuffix(&host, "]");
    out.host = std::string(host == "localhost" ? "127.0.0.1" : host);
    in6_addr binary = {};
    if (inet_pton(out.is_v6 ? AF_INET6 : AF_INET, out.host.c_str(), &binary) == 1) return out;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("HTTP address ", address, " is not IP:PORT, as in 127.0.0.1:7701"));
}

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

SocketAddress MakeSocketAddress(const HostPort& at) {
  SocketAddress out;
  const auto port = htons(static_cast<std::uint16_t>(at.port));
  if (at.is_v6) {
    auto* const v6 = reinterpret_cast<sockaddr_in6*>(&out.storage);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = port;
    inet_pton(AF_INET6, at.host.c_str(), &v6->sin6_addr);
    out.size = sizeof(sockaddr_in6);
  } else {
    auto* const v4 = reinterpret_cast<sockaddr_in*>(&out.storage);
    v4->sin_family = AF_INET;
    v4->sin_port = port;
    inet_pton(AF_INET, at.host.c_str(), &v4->sin_addr);
    out.size = sizeof(sockaddr_in);
  }
  return out;
}

Fd MakeSocket(const HostPort& at, int flags) {
  return Fd(::socket(at.is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
}

// Binds and closes: the library only says that it could not start, this says why.
absl::Status WhyNotBound(const HostPort& at, absl::string_view address) {
  const SocketAddress to = MakeSocketAddress(at);
  const Fd fd = MakeSocket(at, 0);
  const int one = 1;
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  if (::bind(fd.get(), to.get(), to.size) != 0 || ::listen(fd.get(), 1) != 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot serve HTTP on ", address));
  }
  return absl::InternalError(absl::StrCat("cannot serve HTTP on ", address));
}

void Respond(mg_connection* connection, int code, absl::string_view type, absl::string_view body,
             bool with_body) {
  const char* const reason = mg_get_response_code_text(connection, code);
  const std::string head =
      absl::StrCat("HTTP/1.1 ", code, " ", reason, "\r\nContent-Type: ", type,
                   "\r\nContent-Length: ", body.size(),
                   "\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n");
  mg_write(connection, head.data(), head.size());
  if (with_body) mg_write(connection, body.data(), body.size());
}

constexpr absl::string_view kPlain = "text/plain; charset=utf-8";

// Every request comes here: one table of paths.
class Routes final : public CivetHandler {
 public:
  explicit Routes(const HttpEndpointOptions& options) : options_(options) {}

  bool handleGet(CivetServer* /*server*/, mg_connection* connection) override {
    return Answer(connection, true);
  }
  bool handleHead(CivetServer* /*server*/, mg_connection* connection) override {
    return Answer(connection, false);
  }
  bool handlePost(CivetServer* /*server*/, mg_connection* c) override { return Refuse(c); }
  bool handlePut(CivetServer* /*server*/, mg_connection* c) override { return Refuse(c); }
  bool handleDelete(CivetServer* /*server*/, mg_connection* c) override { return Refuse(c); }
  bool handleOptions(CivetServer* /*server*/, mg_connection* c) override { return Refuse(c); }
  bool handlePatch(CivetServer* /*server*/, mg_connection* c) override { return Refuse(c); }

 private:
  static bool Refuse(mg_connection* connection) {
    Respond(connection, 405, kPlain, "only GET and HEAD\n", true);
    return true;
  }

  bool Answer(mg_connection* connection, bool with_body) {
    const absl::string_view path = mg_get_request_info(connection)->local_uri;
    if (path == "/metrics") {
      const std::string body = prometheus::TextSerializer().Serialize(
          options_.collect ? options_.collect() : std::vector<prometheus::MetricFamily>());
      Respond(connection, 200, "text/plain; version=0.0.4; charset=utf-8", body, with_body);
    } else if (path == "/healthz") {
      Respond(connection, 200, kPlain, "ok\n", with_body);
    } else if (path == "/readyz") {
      const absl::Status status = options_.ready ? options_.ready() : absl::OkStatus();
      Respond(connection, status.ok() ? 200 : 503, kPlain,
              status.ok() ? "ready\n" : absl::StrCat(status.message(), "\n"), with_body);
    } else {
      Respond(connection, 404, kPlain, "paths here: /metrics /healthz /readyz\n", with_body);
    }
    return true;
  }

  const HttpEndpointOptions& options_;
};

}  // namespace

struct HttpEndpoint::Server {
  explicit Server(HttpEndpointOptions given) : options(std::move(given)), routes(options) {}
  const HttpEndpointOptions options;
  HostPort bound;
  Routes routes;
  std::unique_ptr<CivetServer> civet;  // first to go: it waits for its threads
};

absl::StatusOr<std::unique_ptr<HttpEndpoint>> HttpEndpoint::Start(HttpEndpointOptions options) {
  PARAM_ASSIGN_OR_RETURN(const HostPort at, ParseAddress(options.address));
  const std::string host = at.is_v6 ? absl::StrCat("[", at.host, "]") : at.host;
  const std::string asked = absl::StrCat(host, ":", at.port);
  auto server = std::make_unique<Server>(std::move(options));
  const std::vector<std::string> settings = {
      "listening_ports",       asked, "num_threads",       "4", "request_timeout_ms", "10000",
      "keep_alive_timeout_ms", "0",   "enable_keep_alive", "no"};
  try {
    server->civet = std::make_unique<CivetServer>(settings);
  } catch (const CivetException&) {
    return WhyNotBound(at, asked);
  }
  server->civet->addHandler("", &server->routes);
  const std::vector<int> ports = server->civet->getListeningPorts();
  if (ports.empty()) return WhyNotBound(at, asked);
  server->bound = at;
  server->bound.port = ports.front();
  std::string bound = absl::StrCat(host, ":", ports.front());
  return std::unique_ptr<HttpEndpoint>(
      new HttpEndpoint(std::move(server), std::move(bound), ports.front()));
}

HttpEndpoint::HttpEndpoint(std::unique_ptr<Server> server, std::string address, int port)
    : server_(std::move(server)), address_(std::move(address)), port_(port) {}

// The library looks at its stop flag between polls of two seconds; a connection ends a poll.
// Whoever stops a daemon should not wait for that.
HttpEndpoint::~HttpEndpoint() {
  std::atomic<bool> is_closed = false;
  std::thread waker([this, &is_closed] {
    const SocketAddress to = MakeSocketAddress(server_->bound);
    while (!is_closed) {
      const Fd fd = MakeSocket(server_->bound, SOCK_NONBLOCK);
      (void)::connect(fd.get(), to.get(), to.size);
      (void)::poll(nullptr, 0, 5);
    }
  });
  server_->civet->close();
  is_closed = true;
  waker.join();
}

}  // namespace param
