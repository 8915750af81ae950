// What there is: the probe, the inventory, and the state of the clocks.

#include <cstdio>

#include "agent/backends/cuda/context.h"

namespace param::cuda {
namespace {

// "GPU-01234567-89ab-cdef-0123-456789abcdef", as nvidia-smi writes it.
std::string Uuid(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char byte[4];
    std::snprintf(byte, sizeof(byte), "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    text += byte;
  }
  return text;
}

std::string DescribeDevice(int index, const cudaDeviceProp& properties, const Nvml* nvml) {
  char bus_id[32] = "";
  if (cudaDeviceGetPCIBusId(bus_id, sizeof(bus_id), index) != cudaSuccess) bus_id[0] = '\0';
  kit::JsonObject object;
  object.Integer("index", index)
      .Text("name", properties.name)
      .Text("uuid", Uuid(properties.uuid))
      .Integer("memory_bytes", static_cast<std::int64_t>(properties.totalGlobalMem))
      .Text("compute_capability",
            std::to_string(properties.major) + "." + std::to_string(properties.minor))
      .Integer("sm_count", properties.multiProcessorCount)
      .Integer("l2_bytes", properties.l2CacheSize)
      .Text("pci_bus_id", bus_id)
      .Raw("ecc", properties.ECCEnabled != 0 ? "true" : "false");
  const auto device = nvml == nullptr ? nullptr : nvml->Device(bus_id);
  if (device != nullptr) {
    if (const auto watts = device->PowerLimitWatts()) object.Number("power_limit_w", *watts);
  }
  return object.Done();
}

std::string DescribeLibraries(const Nvml* nvml) {
  kit::JsonObject object;
  int version = 0;
  if (cudaRuntimeGetVersion(&version) == cudaSuccess) {
    object.Text("cuda_runtime", CudaVersion(version));
  }
  // 0 where there is no driver.
  if (cudaDriverGetVersion(&version) == cudaSuccess && version > 0) {
    object.Text("cuda_driver", CudaVersion(version));
  }
  const std::string blas = BlasVersion(cublasLtGetVersion());
  object.Text("cublas", blas).Text("cublaslt", blas);
  if (nvml != nullptr) {
    if (const auto driver = nvml->DriverVersion()) object.Text("driver", *driver);
  }
  return object.Done();
}

// Devices found, or -1 with the reason.
std::int32_t CountDevices(param_error* why) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    static_cast<void>(FailWith(why, "cudaGetDeviceCount", error, nullptr));
    return -1;
  }
  // No context is made: that would take memory and time from a job that runs here now.
  std::string too_old;
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp properties = {};
    if (const cudaError_t error = cudaGetDeviceProperties(&properties, device);
        error != cudaSuccess) {
      static_cast<void>(FailWith(why, "cudaGetDeviceProperties", error, nullptr));
      return -1;
    }
    if (properties.major >= kOldestMajor) return count;
    too_old = properties.name;
  }
  if (!too_old.empty()) {
    static_cast<void>(kit::Fail(why, kit::kFailedPrecondition,
                                "%s: compute capability 8.0 or later is needed", too_old.c_str()));
    return -1;
  }
  return count;
}

}  // namespace

std::int32_t Probe(param_error* why) {
  std::int32_t devices = -1;
  static_cast<void>(kit::Guard(why, [&]() -> std::int32_t {
    devices = CountDevices(why);
    return kit::kOk;
  }));
  return devices;
}

std::int32_t DescribeDevices(char* json, std::size_t capacity, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      count = 0;  // the probe says why; the libraries are there all the same
    }
    const std::unique_ptr<Nvml> nvml = Nvml::Load();
    std::string devices = "[";
    for (int index = 0; index < count; ++index) {
      cudaDeviceProp properties = {};
      PARAM_CUDA_TRY(err, nullptr, cudaGetDeviceProperties, &properties, index);
      devices += (index == 0 ? "" : ", ") + DescribeDevice(index, properties, nvml.get());
    }
    const std::string text = kit::JsonObject()
                                 .Raw("devices", devices + "]")
                                 .Raw("libraries", DescribeLibraries(nvml.get()))
                                 .Done();
    return kit::PutText(text, json, capacity, err);
  });
}

std::int32_t Clocks(param_ctx* ctx, char* json, std::size_t capacity, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    PARAM_KIT_TRY(Enter(ctx, err));
    kit::JsonObject object;
    if (const NvmlDevice* const device = ctx->nvml_device.get(); device != nullptr) {
      const auto number = [&object](const char* key, std::optional<double> value) {
        if (value.has_value()) object.Number(key, *value);
      };
      number("sm_hz", device->SmHz());
      number("memory_hz", device->MemoryHz());
      number("power_w", device->PowerWatts());
      number("power_limit_w", device->PowerLimitWatts());
      number("energy_j", device->EnergyJoules());
      number("temperature_c", device->TemperatureCelsius());
      if (const auto reasons = device->Throttle()) object.Text("throttle", *reasons);
    }
    return kit::PutText(object.Done(), json, capacity, err);
  });
}

}  // namespace param::cuda
