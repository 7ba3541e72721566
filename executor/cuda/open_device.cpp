#include "executor/cuda/open_device.h"

#include <fmt/format.h>

#include "executor/cuda/memory/buffers.h"

namespace reckon::cuda {

int device_count() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess ? devices : 0;
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
