#include "kernels/optimizer/adamw.h"

#include "gpu/device.h"

using namespace reckon;

TEST_CASE("the AdamW kernel gives the reference's bits at every size, wherever it begins") {
  require_device();
  const std::size_t n = GENERATE(1u, 3u, 4u, 31u, 32u, 33u, 1023u, 1025u, 1'000'003u);
  const std::size_t skew = n > 100000 ? 0 : GENERATE(0u, 3u);  // from 16 bytes: of a shard
  std::vector<float> weights(n), firsts(n), seconds(n), gradients(n);
  for (std::size_t i = 0; i < n; ++i) {
    weights[i] = 0.001f * static_cast<float>(i % 977) - 0.4f;
    firsts[i] = 0.01f * static_cast<float>(i % 13) - 0.05f;
    seconds[i] = 0.0001f * static_cast<float>(i % 17);
    gradients[i] = 0.003f * static_cast<float>(i % 101) - 0.1f;
  }
  const AdamW options{.learning_rate = 0.003f, .weight_decay = 0.1f, .gradient_scale = 0.37f};
  const DeviceArray w(weights, skew), m(firsts), v(seconds), g(gradients, skew);
  REQUIRE(adamw(options, 6, w.data, m.data, v.data, g.data, static_cast<std::int64_t>(n),
                nullptr) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  adamw_reference(options, 6, weights, firsts, seconds, gradients);
  CHECK(w.host(n) == weights);
  CHECK(m.host(n) == firsts);
  CHECK(v.host(n) == seconds);
}
