#include "agent/backend/device.h"

#include <gtest/gtest.h>

#include <vector>

namespace param {
namespace {

// Counts of a backend that only opens and makes buffers.
struct Counts {
  int open = 0;
  int buffers = 0;
};

// The context is the counter itself, handed over in param_host.user.
Counts* Of(param_ctx* ctx) { return reinterpret_cast<Counts*>(ctx); }

param_device_v1 SmallTable() {
  param_device_v1 table = {};
  table.struct_size = sizeof(table);
  table.kind = "small";
  table.open = [](const param_host* host, std::int32_t, param_ctx** out, param_error*) {
    *out = static_cast<param_ctx*>(host->user);
    ++Of(*out)->open;
    return std::int32_t{0};
  };
  table.close = [](param_ctx* ctx) { --Of(ctx)->open; };
  table.buffer_create = [](param_ctx* ctx, param_memory_kind, std::size_t, param_buffer** out,
                           param_error*) {
    *out = reinterpret_cast<param_buffer*>(ctx);
    ++Of(ctx)->buffers;
    return std::int32_t{0};
  };
  table.buffer_destroy = [](param_ctx* ctx, param_buffer*) { --Of(ctx)->buffers; };
  return table;
}

class DeviceTest : public ::testing::Test {
 protected:
  DeviceTest() { host_.user = &counts_; }
  Counts counts_;
  param_host host_ = {};
  param_device_v1 table_ = SmallTable();
};

TEST_F(DeviceTest, ClosesWhatItOpenedOnce) {
  {
    absl::StatusOr<Device> device = Device::Open(table_, host_, 0);
    ASSERT_TRUE(device.ok()) << device.status();
    const Device moved = *std::move(device);
    EXPECT_EQ(counts_.open, 1);
  }
  EXPECT_EQ(counts_.open, 0);
}

TEST_F(DeviceTest, LeavesABorrowedContextOpen) {
  { const Device device = Device::Borrow(table_, reinterpret_cast<param_ctx*>(&counts_)); }
  EXPECT_EQ(counts_.open, 0);
}

TEST_F(DeviceTest, HandlesAreDestroyedOnceAndMayMove) {
  const absl::StatusOr<Device> device = Device::Open(table_, host_, 0);
  ASSERT_TRUE(device.ok());
  {
    absl::StatusOr<Buffer> first = device->CreateBuffer(PARAM_MEMORY_HOST, 8);
    ASSERT_TRUE(first.ok());
    std::vector<Buffer> buffers;
    buffers.push_back(*std::move(first));
    Buffer assigned;
    assigned = std::move(buffers[0]);
    EXPECT_EQ(assigned.bytes(), 8u);
    EXPECT_EQ(counts_.buffers, 1);
  }
  EXPECT_EQ(counts_.buffers, 0);
}

TEST_F(DeviceTest, AMissingEntryIsUnimplementedAndNamed) {
  const absl::StatusOr<Device> device = Device::Open(table_, host_, 0);
  ASSERT_TRUE(device.ok());
  EXPECT_EQ(device->CreateStream().status(),
            absl::UnimplementedError("backend small has no stream_create"));
  EXPECT_EQ(device->Clocks().status(), absl::UnimplementedError("backend small has no clocks"));
}

TEST_F(DeviceTest, ASuccessWithoutAHandleIsAnError) {
  table_.open = [](const param_host*, std::int32_t, param_ctx**, param_error*) {
    return std::int32_t{0};
  };
  EXPECT_EQ(Device::Open(table_, host_, 0).status().code(), absl::StatusCode::kInternal);
}

TEST_F(DeviceTest, AnErrorKeepsItsWords) {
  table_.open = [](const param_host*, std::int32_t, param_ctx**, param_error* error) {
    std::snprintf(error->message, sizeof(error->message), "no such thing");
    return std::int32_t{5};
  };
  EXPECT_EQ(Device::Open(table_, host_, 0).status(), absl::NotFoundError("no such thing"));
}

}  // namespace
}  // namespace param
