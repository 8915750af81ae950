#pragma once
// NVML, loaded at run time: the driver brings it, the toolkit does not. Everything here is a bonus:
// what cannot be read is left out.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace param::cuda {

// One device of NVML. Thread safe, as NVML is.
class NvmlDevice {
 public:
  virtual ~NvmlDevice() = default;
  virtual std::optional<double> SmHz() const = 0;
  virtual std::optional<double> MemoryHz() const = 0;
  // Names joined by ", "; "none" when nothing holds the clocks down.
  virtual std::optional<std::string> Throttle() const = 0;
  virtual std::optional<double> PowerWatts() const = 0;
  virtual std::optional<double> PowerLimitWatts() const = 0;
  // Since the driver was loaded.
  virtual std::optional<double> EnergyJoules() const = 0;
  virtual std::optional<double> TemperatureCelsius() const = 0;
};

// Loads the library at most once per process and never unloads it. Thread safe.
class Nvml {
 public:
  virtual ~Nvml() = default;
  virtual std::optional<std::string> DriverVersion() const = 0;
  // By PCI bus id, as the runtime writes it; null when NVML does not know it.
  virtual std::unique_ptr<NvmlDevice> Device(const std::string& pci_bus_id) const = 0;

  // Null where there is no NVML or it does not start.
  static std::unique_ptr<Nvml> Load();
};

}  // namespace param::cuda
