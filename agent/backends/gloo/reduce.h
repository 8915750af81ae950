#pragma once
// Reductions in the form that Gloo calls; a file of its own, since its loops are worth more
// optimisation than the rest. Any thread.

#include <functional>

#include "agent/backend/kit_reduce.h"

namespace param::gloo_comm {

// out[i] = a[i] op b[i]; `out` may be one of both.
using ReduceFunction = std::function<void(void* out, const void* a, const void* b, std::size_t)>;

// Null for types that the kit does not reduce.
ReduceFunction ReduceFunctionOf(kit::RedOp op, param_dtype dtype);

}  // namespace param::gloo_comm
