#include "proto/base/file.h"

#include <gtest/gtest.h>

namespace param {
namespace {

TEST(ReadFile, ReadsFilesOfTheKernel) {
  const auto text = ReadFile("/proc/self/stat");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_FALSE(text->empty());
}

TEST(ReadFile, NamesThePathAndTheReason) {
  const auto text = ReadFile("/no/such/file");
  EXPECT_EQ(text.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(text.status().message().find("/no/such/file"), absl::string_view::npos);
}

TEST(ReadFile, AFolderIsAnErrorAndNoCrash) {
  EXPECT_FALSE(ReadFile("/proc").ok());
  EXPECT_EQ(ReadFileOrEmpty("/proc"), "");
}

}  // namespace
}  // namespace param
