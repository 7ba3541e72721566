#include "gpu/device.h"
#include "kernels/optimizer/sgd_momentum.h"

using namespace reckon;

TEST_CASE("the SGD kernel gives the reference's bits at every size, wherever it begins") {
  require_device();
  const std::size_t n = GENERATE(1u, 3u, 4u, 31u, 32u, 33u, 1023u, 1025u, 1'000'003u);
  const std::size_t skew = n > 100000 ? 0 : GENERATE(0u, 3u);  // from 16 bytes: of a shard
  std::vector<float> weights(n), velocities(n), gradients(n);
  for (std::size_t i = 0; i < n; ++i) {
    weights[i] = 0.001f * static_cast<float>(i % 977) - 0.4f;
    velocities[i] = 0.01f * static_cast<float>(i % 13);
    gradients[i] = 0.003f * static_cast<float>(i % 101) - 0.1f;
  }
  const SgdMomentum options{
      .learning_rate = 0.1f, .momentum = 0.9f, .weight_decay = 1e-4f, .gradient_scale = 0.37f};
  const DeviceArray w(weights, skew), v(velocities), g(gradients, skew);
  REQUIRE(sgd_momentum(options, w.data, v.data, g.data, static_cast<std::int64_t>(n), nullptr) ==
          cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  sgd_momentum_reference(options, weights, velocities, gradients);
  CHECK(w.host(n) == weights);
  CHECK(v.host(n) == velocities);
}
