#pragma once
// The gloo backend's table "comm".

#include "agent/backend/param_backend.h"

namespace param::gloo_comm {

const param_comm_v1* CommTable();

}  // namespace param::gloo_comm
