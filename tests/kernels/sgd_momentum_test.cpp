#include "kernels/optimizer/sgd_momentum.h"

#include <catch2/catch.hpp>

using namespace reckon;

TEST_CASE("the first step of SGD with momentum is plain gradient descent") {
  std::vector<float> w{1, -2}, v{0, 0};
  const std::vector<float> g{0.5f, 4};
  sgd_momentum_reference({.learning_rate = 0.25f, .momentum = 0.5f}, w, v, g);
  CHECK(w == std::vector<float>{0.875f, -3});  // 1 - 0.25 * 0.5; -2 - 0.25 * 4
  CHECK(v == std::vector<float>{0.5f, 4});
}

TEST_CASE("the second step adds the decayed velocity, and weight decay acts on the gradient") {
  std::vector<float> w{1}, v{0.5f};
  const std::vector<float> g{1};
  sgd_momentum_reference({.learning_rate = 0.5f, .momentum = 0.5f, .weight_decay = 0.25f}, w, v, g);
  CHECK(v[0] == 1.5f);   // 0.5 * 0.5 + (1 + 0.25 * 1)
  CHECK(w[0] == 0.25f);  // 1 - 0.5 * 1.5
}
