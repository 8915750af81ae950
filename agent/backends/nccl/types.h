#pragma once
// From the boundary's element types and reductions to NCCL's. Pure.

#include <nccl.h>

#include <string>

#include "agent/backend/kit_collective.h"

namespace param::nccl {

// The 8-bit floats came with NCCL 2.24; it reduces them from compute capability 9.0 on.
inline constexpr int kFirstWithF8 = 22400;
inline constexpr int kFirstMajorWithF8 = 9;

// "2.28.9" from 22809, as since 2.9; "2.8.4" from 2804, as before.
inline std::string VersionText(int code) {
  const int major = code >= 10000 ? code / 10000 : code / 1000;
  const int minor = code >= 10000 ? code / 100 % 100 : code / 100 % 10;
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(code % 100);
}

inline ncclRedOp_t RedOpOf(kit::RedOp op) {
  switch (op) {
    case kit::RedOp::kSum:
      return ncclSum;
    case kit::RedOp::kProd:
      return ncclProd;
    case kit::RedOp::kMin:
      return ncclMin;
    case kit::RedOp::kMax:
      return ncclMax;
    case kit::RedOp::kAvg:
      return ncclAvg;
  }
  return ncclSum;
}

// The type for a collective on a device of compute capability `major` with library `version`.
// Without a reduction 8-bit floats travel as bytes. UNIMPLEMENTED with the reason otherwise.
inline std::int32_t TypeOf(const kit::Collective& c, int version, int major, ncclDataType_t* out,
                           param_error* err) {
  const auto is = [out](ncclDataType_t type) {
    *out = type;
    return std::int32_t{kit::kOk};
  };
  switch (c.dtype) {
    case PARAM_DTYPE_F64:
      return is(ncclFloat64);
    case PARAM_DTYPE_F32:
      return is(ncclFloat32);
    case PARAM_DTYPE_F16:
      return is(ncclFloat16);
    case PARAM_DTYPE_BF16:
      return is(ncclBfloat16);
    case PARAM_DTYPE_I8:
      return is(ncclInt8);
    case PARAM_DTYPE_U8:
      return is(ncclUint8);
    case PARAM_DTYPE_I32:
      return is(ncclInt32);
    case PARAM_DTYPE_I64:
      return is(ncclInt64);
    case PARAM_DTYPE_F8E4M3:
    case PARAM_DTYPE_F8E5M2:
      if (!c.reduces()) return is(ncclUint8);
      break;
    case PARAM_DTYPE_TF32:
      return kit::Fail(err, kit::kUnimplemented,
                       "NCCL has no type tf32, which is f32 in memory: take f32");
  }
  if (version < kFirstWithF8 || NCCL_VERSION_CODE < kFirstWithF8) {
    return kit::Fail(err, kit::kUnimplemented, "NCCL reduces %s from 2.24 on; this is %s",
                     kit::DtypeName(c.dtype), VersionText(version).c_str());
  }
  if (major < kFirstMajorWithF8) {
    return kit::Fail(err, kit::kUnimplemented,
                     "NCCL reduces %s on devices of compute capability 9.0 or later; this has %d.x",
                     kit::DtypeName(c.dtype), major);
  }
#if NCCL_VERSION_CODE >= 22400
  return is(c.dtype == PARAM_DTYPE_F8E4M3 ? ncclFloat8e4m3 : ncclFloat8e5m2);
#else
  return kit::Fail(err, kit::kInternal, "no type for %s", kit::DtypeName(c.dtype));
#endif
}

}  // namespace param::nccl
