#include <catch2/catch.hpp>

#include "kernels/sgd_momentum.h"
#include "support/skip.h"

using namespace reckon;

namespace {

void require_device() {
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

}  // namespace

TEST_CASE("the SGD kernel gives the reference's bits at every size") {
  require_device();
  const std::size_t n = GENERATE(1u, 3u, 4u, 31u, 32u, 33u, 1023u, 1025u, 1'000'003u);
  std::vector<float> weights(n), velocities(n), gradients(n);
  for (std::size_t i = 0; i < n; ++i) {
    weights[i] = 0.001f * static_cast<float>(i % 977) - 0.4f;
    velocities[i] = 0.01f * static_cast<float>(i % 13);
    gradients[i] = 0.003f * static_cast<float>(i % 101) - 0.1f;
  }
  const SgdMomentum options{.learning_rate = 0.1f, .momentum = 0.9f, .weight_decay = 1e-4f};
  const DeviceArray w(weights), v(velocities), g(gradients);
  REQUIRE(sgd_momentum(options, w.data, v.data, g.data, static_cast<std::int64_t>(n), nullptr) ==
          cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  sgd_momentum_reference(options, weights, velocities, gradients);
  CHECK(w.host(n) == weights);
  CHECK(v.host(n) == velocities);
}
