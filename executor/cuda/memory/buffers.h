#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

// Memory of the device, and what its calls answer.
namespace reckon::cuda {

/// A call of CUDA, cuBLASLt or NCCL failed: which, and why.
struct DeviceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Throws DeviceError: "attention forward: out of memory".
void check(cudaError_t status, const char* what);

/// What slots of parameters and activations are filled up to: 256 bytes of 16-bit elements.
constexpr std::int64_t kLineElements = 128;

/// A number of elements, as kernels take it.
constexpr std::int64_t count_of(std::size_t n) { return static_cast<std::int64_t>(n); }

/// Freed at the end of its life. Zeros at the beginning.
template <class T>
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::int64_t count);
  ~DeviceBuffer() { cudaFree(data_); }
  DeviceBuffer(DeviceBuffer&& other) noexcept : data_(other.data_), count_(other.count_) {
    other.data_ = nullptr;
    other.count_ = 0;
  }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  T* data() { return data_; }
  const T* data() const { return data_; }
  std::int64_t size() const { return count_; }
  std::span<T> span() { return {data_, static_cast<std::size_t>(count_)}; }

 private:
  T* data_ = nullptr;
  std::int64_t count_ = 0;
};

/// Memory of the host that copies to the device read without a detour, as long as this lives.
class PinnedMemory {
 public:
  /// Memory that cannot be pinned stays as it is: copies of it are slower.
  explicit PinnedMemory(std::vector<std::span<float>> memory);
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

 private:
  std::vector<void*> pinned_;
};

/// Both return when the copy is done.
void copy_to_device(void* to, const void* from, std::size_t bytes);
void copy_to_host(void* to, const void* from, std::size_t bytes);
/// Behind what `stream` has been asked for. `what` names them where one fails.
void queue_to_device(void* to, std::span<const std::byte> from, cudaStream_t stream,
                     const char* what);
void queue_to_host(std::span<std::byte> to, const void* from, cudaStream_t stream,
                   const char* what);

}  // namespace reckon::cuda
