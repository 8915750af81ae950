#include "proto/daemon/http_endpoint.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"
#include "proto/base/handle.h"
#include "proto/daemon/process_stats.h"

namespace param {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Sends one request and reads all of the answer.
std::string Request(int port, const std::string& method, const std::string& path) {
  const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)) != 0)
    return "no connection";
  const std::string text =
      absl::StrCat(method, " ", path, " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  if (::write(fd.get(), text.data(), text.size()) < 0) return "no request";
  std::string answer;
  char buffer[4096];
  for (ssize_t size = 0; (size = ::read(fd.get(), buffer, sizeof(buffer))) > 0;) {
    answer.append(buffer, static_cast<std::size_t>(size));
  }
  return answer;
}

std::unique_ptr<HttpEndpoint> MustStart(HttpEndpointOptions options) {
  options.address = "127.0.0.1:0";
  auto endpoint = HttpEndpoint::Start(std::move(options));
  EXPECT_EQ(endpoint.status(), absl::OkStatus());
  return endpoint.ok() ? *std::move(endpoint) : nullptr;
}

TEST(HttpEndpointTest, ReportsTheAddressItIsBoundTo) {
  const auto endpoint = MustStart({});
  EXPECT_GT(endpoint->port(), 0);
  EXPECT_EQ(endpoint->address(), absl::StrCat("127.0.0.1:", endpoint->port()));
}

TEST(HttpEndpointTest, HealthIsOk) {
  const auto endpoint = MustStart({});
  const std::string answer = Request(endpoint->port(), "GET", "/healthz");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK"));
  EXPECT_THAT(answer, HasSubstr("\r\n\r\nok\n"));
}

TEST(HttpEndpointTest, ReadinessFollowsItsCallback) {
  absl::Status status = absl::UnavailableError("store is opening");
  HttpEndpointOptions options;
  options.ready = [&status] { return status; };
  const auto endpoint = MustStart(options);
  const std::string not_ready = Request(endpoint->port(), "GET", "/readyz");
  EXPECT_THAT(not_ready, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(not_ready, HasSubstr("store is opening\n"));
  status = absl::OkStatus();
  EXPECT_THAT(Request(endpoint->port(), "GET", "/readyz"), StartsWith("HTTP/1.1 200 OK"));
}

TEST(HttpEndpointTest, MetricsAreSerialized) {
  HttpEndpointOptions options;
  options.collect = ProcessMetrics;
  const auto endpoint = MustStart(options);
  const std::string answer = Request(endpoint->port(), "GET", "/metrics");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK"));
  EXPECT_THAT(answer, HasSubstr("text/plain; version=0.0.4"));
  EXPECT_THAT(answer, HasSubstr("\nprocess_cpu_seconds_total "));
  EXPECT_THAT(answer, HasSubstr("\nprocess_resident_memory_bytes "));
  EXPECT_THAT(answer, HasSubstr("\nprocess_open_fds "));
}

TEST(HttpEndpointTest, OtherPathsAre404AndOtherMethods405) {
  const auto endpoint = MustStart({});
  EXPECT_THAT(Request(endpoint->port(), "GET", "/"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Request(endpoint->port(), "GET", "/metrics/x"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Request(endpoint->port(), "GET", "/../etc/passwd"), StartsWith("HTTP/1.1 4"));
  EXPECT_THAT(Request(endpoint->port(), "DELETE", "/metrics"), StartsWith("HTTP/1.1 405 "));
}

TEST(HttpEndpointTest, HeadGivesNoBody) {
  const auto endpoint = MustStart({});
  const std::string answer = Request(endpoint->port(), "HEAD", "/healthz");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK"));
  EXPECT_TRUE(answer.ends_with("\r\n\r\n"));
}

TEST(HttpEndpointTest, ATakenPortIsNamed) {
  const auto first = MustStart({});
  HttpEndpointOptions options;
  options.address = first->address();
  const auto second = HttpEndpoint::Start(options);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(second.status().message()),
              StartsWith(absl::StrCat("cannot serve HTTP on ", first->address(), ": ")));
}

TEST(HttpEndpointTest, BadAddressesAreInvalidArguments) {
  for (const char* address :
       {"", "7701", "127.0.0.1", "127.0.0.1:70000", "example.org:1", "::1:5"}) {
    HttpEndpointOptions options;
    options.address = address;
    EXPECT_EQ(HttpEndpoint::Start(options).status().code(), absl::StatusCode::kInvalidArgument)
        << address;
  }
}

}  // namespace
}  // namespace param
