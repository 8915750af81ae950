#pragma once
// The communicator of all ranks, over one comm backend.

#include "agent/backend/comm.h"
#include "agent/backend/device.h"
#include "agent/backend/load_backend.h"
#include "agent/bench/driver.h"

namespace param {

// Move-only. The backend, the host and the device outlive it.
class CommGroup {
 public:
  // Collective: rank 0 makes the unique id, the team carries it. Errors are annotated with the
  // step that failed.
  static absl::StatusOr<CommGroup> Create(const LoadedBackend& backend, const param_host& host,
                                          const Device& device, Team& team);
  CommGroup(CommGroup&& other) noexcept;
  CommGroup& operator=(CommGroup&&) = delete;
  CommGroup(const CommGroup&) = delete;
  // The abort path: waits for nobody.
  ~CommGroup();

  // The good path, collective.
  absl::Status Close();

  // What drivers work with; valid until Close or the end of this.
  CommView view() const { return {table_, ctx_, comm_, rank_, size_}; }

 private:
  CommGroup(const param_comm_v1& table, param_ctx* ctx) : table_(&table), ctx_(ctx) {}
  absl::Status Connect(Team& team);

  const param_comm_v1* table_;
  param_ctx* ctx_;
  param_comm* comm_ = nullptr;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace param
