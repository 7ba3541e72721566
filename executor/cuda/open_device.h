#pragma once
#include <cuda_runtime.h>

#include <string>
#include <utility>
#include <vector>

namespace reckon::cuda {

/// Devices that this process sees; 0 also where they cannot be counted.
int device_count();

/// Of the first `devices`, each pair that cannot reach each other's memory. What cannot be found
/// out is none.
std::vector<std::pair<int, int>> pairs_apart(int devices);

/// Why the process with this local rank has no device of its own; empty: it has one.
std::string why_no_device(int local_rank);

/// The device of a local rank, made the calling thread's, and a stream on it. Throws DeviceError.
class OpenDevice {
 public:
  explicit OpenDevice(int local_rank);
  ~OpenDevice();
  OpenDevice(const OpenDevice&) = delete;
  OpenDevice& operator=(const OpenDevice&) = delete;
  cudaStream_t stream() const { return stream_; }
  const std::string& name() const { return name_; }  // "NVIDIA H200"

 private:
  cudaStream_t stream_ = nullptr;
  std::string name_;
};

}  // namespace reckon::cuda
