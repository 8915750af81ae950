#include "agent/backend/load_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "agent/backend/error.h"
#include "agent/backend/probe.h"

namespace param {
namespace {

using ::testing::HasSubstr;

TEST(LoadBackend, NamesAFileThatIsNotThere) {
  const absl::Status status = LoadBackend("/no/such/file.so").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/no/such/file.so"));
}

TEST(LoadBackend, RefusesALibraryThatIsNoBackend) {
  const absl::Status status = LoadBackend("libm.so.6").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is not a backend"));
}

TEST(RunProbe, SaysWhyAFileCannotBeLoaded) {
  const nlohmann::json probed = nlohmann::json::parse(RunProbe("/no/such/file.so"));
  EXPECT_FALSE(probed["loadable"].get<bool>());
  EXPECT_FALSE(probed["usable"].get<bool>());
  EXPECT_THAT(probed["reason"].get<std::string>(), HasSubstr("/no/such/file.so"));
}

TEST(BackendStatus, KeepsCodeAndMessage) {
  BackendError error;
  EXPECT_TRUE(BackendStatus(0, error).ok());
  std::snprintf(error.message, sizeof(error.message), "no");
  EXPECT_EQ(BackendStatus(12, error), absl::UnimplementedError("no"));
}

TEST(BackendStatus, SurvivesWhatABackendMustNotDo) {
  BackendError error;
  EXPECT_THAT(std::string(BackendStatus(13, error).message()), HasSubstr("no reason given"));
  EXPECT_EQ(BackendStatus(4711, error).code(), absl::StatusCode::kUnknown);
  EXPECT_EQ(BackendStatus(-3, error).code(), absl::StatusCode::kUnknown);
  std::fill(std::begin(error.message), std::end(error.message), 'x');
  EXPECT_EQ(BackendStatus(13, error).message().size(), sizeof(error.message));
}

}  // namespace
}  // namespace param
