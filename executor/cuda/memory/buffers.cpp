#include "executor/cuda/memory/buffers.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/half.h"

namespace reckon::cuda {

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  throw DeviceError(fmt::format("{}: {}", what, cudaGetErrorString(status)));
}

template <class T>
DeviceBuffer<T>::DeviceBuffer(std::int64_t count) : count_(count) {
  const std::size_t bytes = static_cast<std::size_t>(std::max<std::int64_t>(count, 1)) * sizeof(T);
  const cudaError_t status = cudaMalloc(&data_, bytes);
  if (status != cudaSuccess)
    throw DeviceError(fmt::format("cannot have {:.1f} GB of the device's memory: {}",
                                  static_cast<double>(bytes) * 1e-9, cudaGetErrorString(status)));
  check(cudaMemsetAsync(data_, 0, bytes, nullptr), "clearing memory");
  check(cudaDeviceSynchronize(), "clearing memory");
}

template class DeviceBuffer<float>;
template class DeviceBuffer<double>;
template class DeviceBuffer<Bf16>;
template class DeviceBuffer<Half>;
template class DeviceBuffer<std::int32_t>;
template class DeviceBuffer<std::byte>;

PinnedMemory::PinnedMemory(std::vector<std::span<float>> memory) {
  for (const std::span<float> part : memory)
    if (!part.empty() &&
        cudaHostRegister(part.data(), part.size_bytes(), cudaHostRegisterDefault) == cudaSuccess)
      pinned_.push_back(part.data());
  cudaGetLastError();  // a refusal is not an error of what comes next
}
PinnedMemory::~PinnedMemory() {
  for (void* part : pinned_) cudaHostUnregister(part);
}

void copy_to_device(void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "copy to the device");
}
void copy_to_host(void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "copy from the device");
}
void queue_to_device(void* to, std::span<const std::byte> from, cudaStream_t stream,
                     const char* what) {
  check(cudaMemcpyAsync(to, from.data(), from.size(), cudaMemcpyHostToDevice, stream), what);
}
void queue_to_host(std::span<std::byte> to, const void* from, cudaStream_t stream,
                   const char* what) {
  check(cudaMemcpyAsync(to.data(), from, to.size(), cudaMemcpyDeviceToHost, stream), what);
}

}  // namespace reckon::cuda
