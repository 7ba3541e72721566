#include "executor/cuda/open_device.h"

#include <fmt/format.h>

#include "executor/cuda/memory/buffers.h"

namespace reckon::cuda {

int device_count() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess ? devices : 0;
}

std::vector<std::pair<int, int>> pairs_apart(int devices) {
  std::vector<std::pair<int, int>> pairs;
  for (int a = 0; a < devices; ++a)
    for (int b = a + 1; b < devices; ++b) {
      int there = 1, back = 1;
      const bool known = cudaDeviceCanAccessPeer(&there, a, b) == cudaSuccess &&
                         cudaDeviceCanAccessPeer(&back, b, a) == cudaSuccess;
      if (known && (there == 0 || back == 0)) pairs.emplace_back(a, b);
    }
  return pairs;
}

std::string why_no_device(int local_rank) {
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status != cudaSuccess || devices == 0)
    return fmt::format("no CUDA device: {}", status == cudaSuccess ? "this machine has none"
                                                                   : cudaGetErrorString(status));
  if (local_rank < devices) return "";
  return fmt::format("the process with local rank {} has no device of its own, this machine has {}",
                     local_rank, devices);
}

OpenDevice::OpenDevice(int local_rank) {
  check(cudaSetDevice(local_rank), "choosing a device");
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, local_rank), "the device's properties");
  name_ = properties.name;
  check(cudaStreamCreate(&stream_), "a stream");
}
OpenDevice::~OpenDevice() { cudaStreamDestroy(stream_); }

}  // namespace reckon::cuda
