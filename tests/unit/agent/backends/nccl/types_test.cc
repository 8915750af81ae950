// Where NCCL's header is; elsewhere there is no backend to test.
#if __has_include(<nccl.h>)
#include "agent/backends/nccl/types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace param::nccl {
namespace {

using kit::CollectiveKind;
using ::testing::HasSubstr;

struct Answer {
  std::int32_t code = 0;
  ncclDataType_t type = ncclNumTypes;
  std::string message;
};

Answer Ask(param_dtype dtype, CollectiveKind kind = CollectiveKind::kAllReduce,
           int version = NCCL_VERSION_CODE, int major = 9) {
  kit::Collective c;
  c.kind = kind;
  c.dtype = dtype;
  Answer answer;
  param_error error = {};
  answer.code = TypeOf(c, version, major, &answer.type, &error);
  answer.message = error.message;
  return answer;
}

TEST(NcclTypes, EveryTypeOfTheBoundaryHasNcclsOfItsSize) {
  const std::pair<param_dtype, ncclDataType_t> pairs[] = {
    {PARAM_DTYPE_F64, ncclFloat64},
    {PARAM_DTYPE_F32, ncclFloat32},
    {PARAM_DTYPE_F16, ncclFloat16},
    {PARAM_DTYPE_BF16, ncclBfloat16},
    {PARAM_DTYPE_I8, ncclInt8},
    {PARAM_DTYPE_U8, ncclUint8},
    {PARAM_DTYPE_I32, ncclInt32},
    {PARAM_DTYPE_I64, ncclInt64},
#if NCCL_VERSION_CODE >= 22400
    {PARAM_DTYPE_F8E4M3, ncclFloat8e4m3},
    {PARAM_DTYPE_F8E5M2, ncclFloat8e5m2},
#endif
  };
  for (const auto& [dtype, expected] : pairs) {
    const Answer answer = Ask(dtype);
    EXPECT_EQ(answer.code, kit::kOk) << kit::DtypeName(dtype) << ": " << answer.message;
    EXPECT_EQ(answer.type, expected) << kit::DtypeName(dtype);
  }
}

TEST(NcclTypes, EightBitFloatsNeedALibraryAndADeviceToBeReducedAndNoneToBeMoved) {
  const auto reduce = CollectiveKind::kReduceScatter;
  const Answer library = Ask(PARAM_DTYPE_F8E4M3, reduce, 22304, 9);
  EXPECT_EQ(library.code, kit::kUnimplemented);
  EXPECT_THAT(library.message, HasSubstr("f8e4m3 from 2.24 on; this is 2.23.4"));
  const Answer device = Ask(PARAM_DTYPE_F8E5M2, reduce, NCCL_VERSION_CODE, 8);
  EXPECT_EQ(device.code, kit::kUnimplemented);
  EXPECT_THAT(device.message, HasSubstr("this has 8.x"));
  const Answer moved = Ask(PARAM_DTYPE_F8E5M2, CollectiveKind::kAllToAll, 22304, 8);
  EXPECT_EQ(moved.code, kit::kOk);
  EXPECT_EQ(moved.type, ncclUint8);
}

TEST(NcclTypes, Tf32IsNoTypeOfACollective) {
  EXPECT_EQ(Ask(PARAM_DTYPE_TF32).code, kit::kUnimplemented);
}

TEST(NcclTypes, ReductionsAreNcclsOwn) {
  EXPECT_EQ(RedOpOf(kit::RedOp::kSum), ncclSum);
  EXPECT_EQ(RedOpOf(kit::RedOp::kProd), ncclProd);
  EXPECT_EQ(RedOpOf(kit::RedOp::kMin), ncclMin);
  EXPECT_EQ(RedOpOf(kit::RedOp::kMax), ncclMax);
  EXPECT_EQ(RedOpOf(kit::RedOp::kAvg), ncclAvg);
}

TEST(NcclTypes, VersionsReadAsNcclWritesThem) {
  EXPECT_EQ(VersionText(22809), "2.28.9");
  EXPECT_EQ(VersionText(21903), "2.19.3");
  EXPECT_EQ(VersionText(2804), "2.8.4");
}

}  // namespace
}  // namespace param::nccl
#endif
