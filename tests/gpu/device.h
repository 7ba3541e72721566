#pragma once
#include <cuda_runtime.h>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "support/skip.h"

// What every test of a kernel needs.
namespace reckon {

inline void require_device() {
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status != cudaSuccess || devices == 0)
    skip_test(std::string("no CUDA device: ") + cudaGetErrorString(status));
}

/// A device copy of a vector, freed at the end of the scope.
struct DeviceArray {
  float* data = nullptr;
  explicit DeviceArray(const std::vector<float>& host) {
    REQUIRE(cudaMalloc(&data, host.size() * sizeof(float)) == cudaSuccess);
    REQUIRE(cudaMemcpy(data, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice) ==
            cudaSuccess);
  }
  ~DeviceArray() { cudaFree(data); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  std::vector<float> host(std::size_t n) const {
    std::vector<float> out(n);
    REQUIRE(cudaMemcpy(out.data(), data, n * sizeof(float), cudaMemcpyDeviceToHost) == cudaSuccess);
    return out;
  }
};

}  // namespace reckon
