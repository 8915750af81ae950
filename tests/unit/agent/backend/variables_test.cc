#include "agent/backend/variables.h"

#include <gtest/gtest.h>

namespace param {
namespace {

TEST(VariablesTest, WhatChangesHowLibrariesWorkReachesAWorkerAndIsRecorded) {
  for (const char* const name :
       {"OPENBLAS_CORETYPE", "OMP_DYNAMIC", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "MKL_CBWR",
        "CUDA_DEVICE_MAX_CONNECTIONS", "CUBLAS_WORKSPACE_CONFIG", "NCCL_SOCKET_IFNAME",
        "NVIDIA_TF32_OVERRIDE", "UCX_TLS", "GLOO_SOCKET_IFNAME", "OMPI_MCA_btl", "PARAM_INTERFACE",
        "LD_LIBRARY_PATH"}) {
    EXPECT_TRUE(ReachesWorker(name)) << name;
    EXPECT_TRUE(IsRecordedVariable(name)) << name;
  }
}

TEST(VariablesTest, SurroundingsReachAWorkerUnrecorded) {
  for (const char* const name : {"PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR"}) {
    EXPECT_TRUE(ReachesWorker(name)) << name;
    EXPECT_FALSE(IsRecordedVariable(name)) << name;
  }
}

TEST(VariablesTest, EverythingElseStaysOutside) {
  for (const char* const name : {"AWS_SECRET_ACCESS_KEY", "PARAM_WORKER_TOKEN", "XNCCL_",
                                 "PATHOLOGY", "CUDA_LAUNCH_BLOCKING", ""}) {
    EXPECT_FALSE(ReachesWorker(name)) << name;
    EXPECT_FALSE(IsRecordedVariable(name)) << name;
  }
}

TEST(VariablesTest, NamesThatSpeakOfSecretsAreKnown) {
  EXPECT_TRUE(MayHoldSecret("OMPI_MCA_orte_precondition_transports"));
  EXPECT_TRUE(MayHoldSecret("PMIX_SECURITY_TOKEN"));
  EXPECT_FALSE(MayHoldSecret("NCCL_ALGO"));
  EXPECT_FALSE(MayHoldSecret("OPENBLAS_CORETYPE"));
}

}  // namespace
}  // namespace param
