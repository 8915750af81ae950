#pragma once
// What stands behind the opaque handles of the fake backend's device.

#include <cstdint>
#include <memory>
#include <vector>

#include "agent/backend/kit_gemm.h"
#include "agent/backends/fake/faults.h"

struct param_ctx {
  const param_host* host = nullptr;
  param::fake::Script script;
  std::unique_ptr<param::fake::Faults> faults;
  std::uint64_t random = 0;   // state of the jitter's generator
  std::uint64_t writes = 0;   // counts what changes memory, for param_buffer::version
  std::int64_t enqueued = 0;  // since the last operation was created
  std::vector<char> flush;
};

struct param_buffer {
  std::vector<unsigned char> data;
  std::uint64_t version = 0;  // changes with the contents
};

struct param_stream {
  double now_ns = 0;  // of the virtual clock
};

struct param_event {
  double at_ns = 0;
  bool recorded = false;
};

namespace param::fake {

enum class OpKind { kNoop, kCopy, kGemm };

// Operands and contents at which an operation last ran.
struct Seen {
  param_buffer* buffers[3] = {};
  std::size_t offsets[3] = {};
  std::uint64_t versions[3] = {};
  bool operator==(const Seen&) const = default;
};

}  // namespace param::fake

struct param_op {
  param::fake::OpKind kind = param::fake::OpKind::kNoop;
  param::kit::Gemm gemm;
  std::size_t copy_bytes = 0;
  param::fake::Seen seen;
};

namespace param::fake {

// The phase of the rank as far as the device knows.
const char* PhaseOf(const param_ctx& ctx);
// Advances the stream's clock by what the script says, or by nothing when time is real.
void SpendTime(param_ctx& ctx, param_stream& stream);
double MonotonicNs();

std::int32_t OpCreate(param_ctx*, const param_op_desc*, param_op**, param_error*);
void OpDestroy(param_ctx*, param_op*);
std::size_t OpWorkspaceBytes(param_ctx*, param_op*);
std::int32_t OpEnqueue(param_ctx*, param_op*, param_stream*, const param_operand*, std::size_t,
                       param_buffer*, param_error*);
std::int32_t OpInfo(param_ctx*, param_op*, char*, std::size_t, param_error*);

const param_device_v1* DeviceTable();
const param_comm_v1* CommTable();
const param_native_v1* NativeTable();

// The probes of all tables: PARAM_FAKE_PROBE may say "crash", "hang" or why the device is not
// usable; PARAM_FAKE_DEVICES how many there are (1).
std::int32_t Probe(param_error* why);

}  // namespace param::fake
