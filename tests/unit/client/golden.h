#pragma once
// Golden files: what a person or a script reads, compared byte by byte. PARAM_UPDATE_GOLDEN=1 in
// the environment writes them anew; look at the difference before it is committed.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace param {

// `path` from the root of the source tree.
inline void ExpectGolden(const std::string& path, const std::string& text) {
  const std::filesystem::path file = std::filesystem::path(PARAM_SOURCE_DIR) / path;
  const char* update = std::getenv("PARAM_UPDATE_GOLDEN");
  if (update != nullptr && std::string(update) == "1") {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
    return;
  }
  std::ifstream in(file, std::ios::binary);
  ASSERT_TRUE(in) << "no " << path << "; make it with PARAM_UPDATE_GOLDEN=1";
  std::ostringstream expected;
  expected << in.rdbuf();
  EXPECT_EQ(text, expected.str()) << path << " differs; PARAM_UPDATE_GOLDEN=1 writes it anew";
}

}  // namespace param
