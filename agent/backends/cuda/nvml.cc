#include "agent/backends/cuda/nvml.h"

#include <dlfcn.h>

namespace param::cuda {
namespace {

// The part of NVML's stable C interface that is used here, declared by hand: nvml.h comes with some
// toolkits only.
using Result = int;  // 0 is success
struct DeviceOpaque;
using DeviceHandle = DeviceOpaque*;
constexpr int kClockSm = 1;
constexpr int kClockMemory = 2;
constexpr int kTemperatureGpu = 0;

struct Functions {
  Result (*init)();
  Result (*driver_version)(char* version, unsigned length);
  Result (*device_by_bus_id)(const char* bus_id, DeviceHandle* device);
  Result (*clock)(DeviceHandle, int type, unsigned* mhz);
  Result (*throttle)(DeviceHandle, unsigned long long* reasons);
  Result (*power)(DeviceHandle, unsigned* milliwatts);
  Result (*power_limit)(DeviceHandle, unsigned* milliwatts);
  Result (*energy)(DeviceHandle, unsigned long long* millijoules);
  Result (*temperature)(DeviceHandle, int sensor, unsigned* celsius);
};

template <typename Function>
void Find(void* library, const char* name, Function* out) {
  *out = reinterpret_cast<Function>(dlsym(library, name));
}

struct Reason {
  unsigned long long bit;
  const char* name;
};
constexpr Reason kReasons[] = {
    {0x1, "gpu_idle"},
    {0x2, "applications_clocks"},
    {0x4, "sw_power_cap"},
    {0x8, "hw_slowdown"},
    {0x10, "sync_boost"},
    {0x20, "sw_thermal_slowdown"},
    {0x40, "hw_thermal_slowdown"},
    {0x80, "hw_power_brake_slowdown"},
    {0x100, "display_clocks"},
};

// A reading through `function`, times `scale`. Both shapes that NVML has: with a selector and
// without.
template <typename T>
std::optional<double> Read(Result (*function)(DeviceHandle, T*), DeviceHandle device,
                           double scale) {
  T value = 0;
  if (function == nullptr || function(device, &value) != 0) return std::nullopt;
  return static_cast<double>(value) * scale;
}
std::optional<double> Read(Result (*function)(DeviceHandle, int, unsigned*), DeviceHandle device,
                           int selector, double scale) {
  unsigned value = 0;
  if (function == nullptr || function(device, selector, &value) != 0) return std::nullopt;
  return static_cast<double>(value) * scale;
}

class LoadedDevice : public NvmlDevice {
 public:
  LoadedDevice(const Functions& functions, DeviceHandle device)
      : functions_(functions), device_(device) {}

  std::optional<double> SmHz() const override {
    return Read(functions_.clock, device_, kClockSm, 1e6);
  }
  std::optional<double> MemoryHz() const override {
    return Read(functions_.clock, device_, kClockMemory, 1e6);
  }
  std::optional<std::string> Throttle() const override {
    unsigned long long reasons = 0;
    if (functions_.throttle == nullptr || functions_.throttle(device_, &reasons) != 0) {
      return std::nullopt;
    }
    std::string names;
    for (const Reason& reason : kReasons) {
      if ((reasons & reason.bit) == 0) continue;
      names += names.empty() ? "" : ", ";
      names += reason.name;
    }
    return names.empty() ? "none" : names;
  }
  std::optional<double> PowerWatts() const override {
    return Read(functions_.power, device_, 1e-3);
  }
  std::optional<double> PowerLimitWatts() const override {
    return Read(functions_.power_limit, device_, 1e-3);
  }
  std::optional<double> EnergyJoules() const override {
    return Read(functions_.energy, device_, 1e-3);
  }
  std::optional<double> TemperatureCelsius() const override {
    return Read(functions_.temperature, device_, kTemperatureGpu, 1);
  }

 private:
  Functions functions_;
  DeviceHandle device_;
};

class LoadedNvml : public Nvml {
 public:
  explicit LoadedNvml(const Functions& functions) : functions_(functions) {}

  std::optional<std::string> DriverVersion() const override {
    char version[96] = "";
    if (functions_.driver_version == nullptr ||
        functions_.driver_version(version, sizeof(version)) != 0) {
      return std::nullopt;
    }
    return version;
  }
  std::unique_ptr<NvmlDevice> Device(const std::string& pci_bus_id) const override {
    DeviceHandle device = nullptr;
    if (functions_.device_by_bus_id == nullptr ||
        functions_.device_by_bus_id(pci_bus_id.c_str(), &device) != 0) {
      return nullptr;
    }
    return std::make_unique<LoadedDevice>(functions_, device);
  }

 private:
  Functions functions_;
};

}  // namespace

std::unique_ptr<Nvml> Nvml::Load() {
  // Never closed: NVML keeps threads and locks of its own, and the process is what we unload.
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  Functions functions = {};
  Find(library, "nvmlInit_v2", &functions.init);
  Find(library, "nvmlSystemGetDriverVersion", &functions.driver_version);
  Find(library, "nvmlDeviceGetHandleByPciBusId_v2", &functions.device_by_bus_id);
  Find(library, "nvmlDeviceGetClockInfo", &functions.clock);
  // Renamed in newer drivers; the old name is still there in all that we know.
  Find(library, "nvmlDeviceGetCurrentClocksEventReasons", &functions.throttle);
  if (functions.throttle == nullptr) {
    Find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", &functions.throttle);
  }
  Find(library, "nvmlDeviceGetPowerUsage", &functions.power);
  Find(library, "nvmlDeviceGetEnforcedPowerLimit", &functions.power_limit);
  Find(library, "nvmlDeviceGetTotalEnergyConsumption", &functions.energy);
  Find(library, "nvmlDeviceGetTemperature", &functions.temperature);
  if (functions.init == nullptr || functions.init() != 0) return nullptr;
  return std::make_unique<LoadedNvml>(functions);
}

}  // namespace param::cuda
