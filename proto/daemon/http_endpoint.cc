#include "proto/daemon/http_endpoint.h"

#include <CivetServer.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <prometheus/text_serializer.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
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

// Binds and closes: the library only says that it could not start, this says why.
absl::Status WhyNotBound(const HostPort& at, absl::string_view address) {
  sockaddr_storage storage = {};
  socklen_t size = sizeof(sockaddr_in);
  if (at.is_v6) {
    auto* const v6 = reinterpret_cast<sockaddr_in6*>(&storage);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(static_cast<std::uint16_t>(at.port));
    inet_pton(AF_INET6, at.host.c_str(), &v6->sin6_addr);
    size = sizeof(sockaddr_in6);
  } else {
    auto* const v4 = reinterpret_cast<sockaddr_in*>(&storage);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<std::uint16_t>(at.port));
    inet_pton(AF_INET, at.host.c_str(), &v4->sin_addr);
  }
  const Fd fd(::socket(at.is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int one = 1;
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&storage), size) != 0 ||
      ::listen(fd.get(), 1) != 0) {
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
  std::string bound = absl::StrCat(host, ":", ports.front());
  return std::unique_ptr<HttpEndpoint>(
      new HttpEndpoint(std::move(server), std::move(bound), ports.front()));
}

HttpEndpoint::HttpEndpoint(std::unique_ptr<Server> server, std::string address, int port)
    : server_(std::move(server)), address_(std::move(address)), port_(port) {}

HttpEndpoint::~HttpEndpoint() = default;

}  // namespace param
