#pragma once
// What every suite over backends shares: the installed ones, and one opened.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "agent/backend/device.h"
#include "agent/backend/load_backend.h"
#include "agent/backend/manifest.h"
#include "agent/backend/op_desc.h"
#include "agent/backend/probe.h"

namespace param {

// Of the build tree, by the manifests alone: a new backend is under test without a line here.
inline const std::vector<Manifest>& InstalledHere() {
  static const auto* const kInstalled = new std::vector<Manifest>(
      FindBackends({std::string(PARAM_BINARY_DIR "/lib/param/backends")}).backends);
  return *kInstalled;
}

inline std::vector<std::string> NamesWith(absl::string_view table) {
  std::vector<std::string> names;
  for (const Manifest& manifest : InstalledHere()) {
    if (manifest.HasTable(table)) names.push_back(manifest.name);
  }
  return names;
}

inline const Manifest& ManifestOf(const std::string& name) {
  for (const Manifest& manifest : InstalledHere()) {
    if (manifest.name == name) return manifest;
  }
  ADD_FAILURE() << "no backend " << name;
  std::abort();
}

// A worker's offer to a backend, alone on its node.
inline param_host LonelyHost(const char* script = "") {
  param_host host = {};
  host.struct_size = sizeof(host);
  host.log = [](void*, std::int32_t, const char*) {};
  host.cancelled = [](void*) { return std::int32_t{0}; };
  host.progress = [](void*, const char*) {};
  host.size = 1;
  host.local_size = 1;
  host.script = script;
  host.threads = 2;
  return host;
}

#define PARAM_ASSERT_OK(expr)                 \
  do {                                        \
    const absl::Status ok_status = (expr);    \
    ASSERT_TRUE(ok_status.ok()) << ok_status; \
  } while (false)

// Loads and opens one backend's first device; skips with the backend's reason where it is not
// usable on this machine.
class OpenedBackend : public ::testing::Test {
 protected:
  void Open(const std::string& name) {
    const nlohmann::json probed = nlohmann::json::parse(RunProbe(ManifestOf(name).object_path));
    ASSERT_TRUE(probed["loadable"].get<bool>()) << probed;
    if (!probed["usable"].get<bool>()) {
      GTEST_SKIP() << name << ": installed, not usable: " << probed["reason"].get<std::string>();
    }
    devices_ = probed["devices"].get<int>();
    absl::StatusOr<LoadedBackend> loaded = LoadBackend(ManifestOf(name).object_path);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    loaded_ = *std::move(loaded);
    ASSERT_TRUE(loaded_.device.has_value());
    absl::StatusOr<Device> device = Device::Open(*loaded_.device, host_, 0);
    ASSERT_TRUE(device.ok()) << device.status();
    device_.emplace(*std::move(device));
    absl::StatusOr<Stream> stream = device_->CreateStream();
    ASSERT_TRUE(stream.ok()) << stream.status();
    stream_ = *std::move(stream);
  }

  Buffer NewBuffer(std::size_t bytes) {
    absl::StatusOr<Buffer> buffer = device_->CreateBuffer(PARAM_MEMORY_DEVICE, bytes);
    EXPECT_TRUE(buffer.ok()) << buffer.status();
    return buffer.ok() ? *std::move(buffer) : Buffer();
  }

  Event NewEvent() {
    absl::StatusOr<Event> event = device_->CreateEvent();
    EXPECT_TRUE(event.ok()) << event.status();
    return event.ok() ? *std::move(event) : Event();
  }

  // One enqueue with the workspace it asks for, and the end of it.
  absl::Status RunOnce(Op& op, absl::Span<const param_operand> operands) {
    Buffer workspace;
    if (op.workspace_bytes() > 0) workspace = NewBuffer(op.workspace_bytes());
    PARAM_RETURN_IF_ERROR(op.Enqueue(stream_, operands, workspace ? &workspace : nullptr));
    return stream_.Synchronize();
  }

  param_host host_ = LonelyHost();
  LoadedBackend loaded_;
  int devices_ = 0;
  std::optional<Device> device_;
  Stream stream_;
};

class BackendTest : public OpenedBackend, public ::testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override { Open(GetParam()); }
};

}  // namespace param
