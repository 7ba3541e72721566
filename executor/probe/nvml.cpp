#include "executor/probe/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>

namespace reckon {
namespace {

using Device = struct nvmlDevice_st*;
struct Memory {  // nvmlMemory_t
  unsigned long long total, free, used;
};
constexpr int kClockSm = 1;            // NVML_CLOCK_SM
constexpr int kTemperatureGpu = 0;     // NVML_TEMPERATURE_GPU
constexpr unsigned kMostNvlinks = 18;  // NVML_NVLINK_MAX_LINKS
constexpr const char* kNoDriver = "no NVIDIA driver (libnvidia-ml.so.1)";

class Nvml {
 public:
  Nvml() = default;
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml() {
    if (started_) call("nvmlShutdown");
    if (library_ != nullptr) ::dlclose(library_);
  }
  bool loaded() const { return library_ != nullptr; }
  int start() {
    const int code = call("nvmlInit_v2");
    started_ = code == 0;
    return code;
  }
  /// NVML's answer; -1 where this driver has no such entry.
  template <class... Arguments>
  int call(const char* name, Arguments... arguments) const {
    auto* entry = reinterpret_cast<int (*)(Arguments...)>(::dlsym(library_, name));
    return entry == nullptr ? -1 : entry(arguments...);
  }
  std::optional<unsigned> number(const char* name, Device device) const {
    unsigned value = 0;
    return call(name, device, &value) == 0 ? std::optional(value) : std::nullopt;
  }
  std::optional<unsigned> number(const char* name, Device device, int which) const {
    unsigned value = 0;
    return call(name, device, which, &value) == 0 ? std::optional(value) : std::nullopt;
  }

 private:
  void* library_ = ::dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
  bool started_ = false;
};

std::optional<double> hertz(std::optional<unsigned> megahertz) {
  return megahertz ? std::optional(1e6 * double(*megahertz)) : std::nullopt;
}
std::optional<int> integer(std::optional<unsigned> value) {
  return value ? std::optional(int(*value)) : std::nullopt;
}

/// Links that are up; nullopt where the driver knows of no link at all.
std::optional<int> nvlinks(const Nvml& nvml, Device device) {
  std::optional<int> up;
  for (unsigned link = 0; link < kMostNvlinks; ++link) {
    unsigned active = 0;
    if (nvml.call("nvmlDeviceGetNvLinkState", device, link, &active) != 0) continue;
    up = up.value_or(0) + (active != 0 ? 1 : 0);
  }
  return up;
}

AcceleratorRecord describe(const Nvml& nvml, Device device, int index, const std::string& driver) {
  AcceleratorRecord r;
  r.index = index;
  r.driver = driver;
  std::array<char, 96> name{};  // NVML_DEVICE_NAME_V2_BUFFER_SIZE
  if (nvml.call("nvmlDeviceGetName", device, name.data(), unsigned(name.size())) == 0)
    r.name = name.data();
  Memory memory{};
  if (nvml.call("nvmlDeviceGetMemoryInfo", device, &memory) == 0)
    r.memory = Bytes{double(memory.total)};
  r.hertz = hertz(nvml.number("nvmlDeviceGetClockInfo", device, kClockSm));
  r.hertz_max = hertz(nvml.number("nvmlDeviceGetMaxClockInfo", device, kClockSm));
  r.pcie_generation = integer(nvml.number("nvmlDeviceGetMaxPcieLinkGeneration", device));
  r.pcie_lanes = integer(nvml.number("nvmlDeviceGetMaxPcieLinkWidth", device));
  r.nvlinks = nvlinks(nvml, device);
  if (const auto t = nvml.number("nvmlDeviceGetTemperature", device, kTemperatureGpu))
    r.celsius = double(*t);
  unsigned long long reasons = 0;
  if (nvml.call("nvmlDeviceGetCurrentClocksThrottleReasons", device, &reasons) == 0)
    r.throttle_reasons = std::int64_t(reasons);
  return r;
}

}  // namespace

NvmlAnswer ask_nvml() {
  Nvml nvml;
  if (!nvml.loaded()) return {{}, kNoDriver};
  if (const int code = nvml.start(); code != 0)
    return {{}, fmt::format("the NVIDIA driver does not start (NVML error {})", code)};
  std::array<char, 81> version{};  // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE and its end
  nvml.call("nvmlSystemGetDriverVersion", version.data(), unsigned(version.size() - 1));
  unsigned count = 0;
  nvml.call("nvmlDeviceGetCount_v2", &count);
  NvmlAnswer answer;
  for (unsigned k = 0; k < count; ++k) {
    Device device{};
    if (nvml.call("nvmlDeviceGetHandleByIndex_v2", k, &device) == 0)
      answer.accelerators.push_back(describe(nvml, device, int(k), version.data()));
  }
  if (answer.accelerators.empty()) answer.problem = "the NVIDIA driver sees no GPU";
  return answer;
}

}  // namespace reckon
