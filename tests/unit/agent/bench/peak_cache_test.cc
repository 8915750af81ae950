#include "agent/bench/peak_cache.h"

#include <gtest/gtest.h>

namespace param {
namespace {

// A device that answers with `code`, or with 7 FLOP/s.
struct Script {
  std::int32_t code = 0;
  int asked = 0;
};

class PeakCacheTest : public ::testing::Test {
 protected:
  PeakCacheTest() {
    table_.struct_size = sizeof(table_);
    table_.kind = "scripted";
    table_.peak_flops = [](param_ctx* ctx, param_dtype, double* out, char*, std::size_t,
                           param_error*) {
      Script& script = *reinterpret_cast<Script*>(ctx);
      ++script.asked;
      *out = 7;
      return script.code;
    };
  }
  std::optional<PeakRate> Get() { return peaks_.Get(device_, PARAM_DTYPE_F32); }

  Script script_;
  param_device_v1 table_ = {};
  Device device_ = Device::Borrow(table_, reinterpret_cast<param_ctx*>(&script_));
  PeakCache peaks_;
};

TEST_F(PeakCacheTest, AsksOnceForWhatIsKnown) {
  ASSERT_TRUE(Get().has_value());
  const int asked = script_.asked;
  EXPECT_EQ(Get()->flops, 7);
  EXPECT_EQ(script_.asked, asked);
}

TEST_F(PeakCacheTest, AsksOnceForWhatTheDeviceCannotTell) {
  script_.code = static_cast<std::int32_t>(absl::StatusCode::kUnimplemented);
  EXPECT_FALSE(Get().has_value());
  const int asked = script_.asked;
  EXPECT_FALSE(Get().has_value());
  EXPECT_EQ(script_.asked, asked);
}

TEST_F(PeakCacheTest, AsksAgainAfterAnErrorThatMayPass) {
  script_.code = static_cast<std::int32_t>(absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(Get().has_value());
  script_.code = 0;
  ASSERT_TRUE(Get().has_value());
  EXPECT_EQ(Get()->flops, 7);
}

}  // namespace
}  // namespace param
