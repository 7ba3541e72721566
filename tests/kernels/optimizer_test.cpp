#include "kernels/optimizer/optimizer.h"

#include <catch2/catch.hpp>
#include <cmath>

using namespace reckon;

TEST_CASE("the first step of AdamW moves each weight by the learning rate, whatever its gradient") {
  // m / (1 - beta1) = g and sqrt(v / (1 - beta2)) = |g|: the step is rate * sign(g), less epsilon's
  // share.
  std::vector<float> w{1, -2, 3}, m(3), v(3);
  const std::vector<float> g{0.5f, -4, 1e-3f};
  adamw_reference({.learning_rate = 0.25f}, 0, w, m, v, g);
  CHECK(w[0] == Approx(0.75));
  CHECK(w[1] == Approx(-1.75));
  CHECK(w[2] == Approx(2.75).epsilon(1e-5));
  CHECK(m[0] == Approx(0.05));                 // 0.1 * 0.5
  CHECK(v[1] == Approx(0.016).epsilon(1e-4));  // 0.001 * 16; 0.999 is a float
}

TEST_CASE("AdamW's second step weighs both gradients, and its decay leaves the moments alone") {
  std::vector<float> w{2}, m(1), v(1);
  const AdamW options{
      .learning_rate = 0.5f, .beta1 = 0.5f, .beta2 = 0.75f, .epsilon = 0, .weight_decay = 0.25f};
  adamw_reference(options, 0, w, m, v, std::vector<float>{1});
  // (1 - 0.5 * 0.25) * 2 - 0.5 * 1
  CHECK(w[0] == 1.25f);
  adamw_reference(options, 1, w, m, v, std::vector<float>{2});
  // m = 0.5 * 0.5 + 0.5 * 2 = 1.25, / (1 - 0.25) = 5/3
  // v = 0.75 * 0.25 + 0.25 * 4 = 1.1875, / (1 - 0.5625) = 19/7
  CHECK(m[0] == 1.25f);
  CHECK(v[0] == 1.1875f);
  CHECK(w[0] == Approx(0.875 * 1.25 - 0.5 * (5.0 / 3) / std::sqrt(19.0 / 7)));
}

TEST_CASE("a gradient's scale is applied before the optimizer's rule") {
  const OptimizerRule rule = GENERATE(OptimizerRule{SgdMomentum{.weight_decay = 0.5f}},
                                      OptimizerRule{AdamW{.weight_decay = 0.5f}});
  FlatOptimizer scaled(rule, 2, {{0, 2}}), plain(rule, 2, {{0, 2}});
  std::vector<float> a{1, 2}, b{1, 2};
  scaled.update(0, 0.1, 0.25, a, std::vector<float>{4, -8});
  plain.update(0, 0.1, 1, b, std::vector<float>{1, -2});
  CHECK(a == b);
}

TEST_CASE("an optimizer leaves frozen weights alone and decays only what decays") {
  FlatOptimizer optimizer(SgdMomentum{.weight_decay = 0.5f}, 4, {{0, 1, true}, {2, 1, false}});
  std::vector<float> w{1, 1, 1, 1};
  optimizer.update(0, 0.5, 1, w, std::vector<float>{0, 9, 0, 9});
  CHECK(w == std::vector<float>{0.75f, 1, 1, 1});  // 1 - 0.5 * 0.5
}

TEST_CASE("optimizers of two halves of the keys do what one of all keys does") {
  const std::vector<TrainedRange> trained{{1, 3, true}, {5, 3, false}};
  FlatOptimizer whole(AdamW{.weight_decay = 0.1f}, 8, trained);
  FlatOptimizer low(AdamW{.weight_decay = 0.1f}, 3, part_of(trained, 0, 3));
  FlatOptimizer high(AdamW{.weight_decay = 0.1f}, 5, part_of(trained, 3, 5));
  std::vector<float> a{1, 2, 3, 4, 5, 6, 7, 8}, b = a;
  const std::vector<float> g{1, -1, 2, -2, 3, -3, 4, -4};
  for (std::int64_t step = 0; step < 3; ++step) {
    whole.update(step, 0.01, 0.5, a, g);
    low.update(step, 0.01, 0.5, std::span(b).first(3), std::span(g).first(3));
    high.update(step, 0.01, 0.5, std::span(b).subspan(3), std::span(g).subspan(3));
  }
  CHECK(a == b);
  CHECK(part_of(trained, 3, 5) == std::vector<TrainedRange>{{0, 1, true}, {2, 3, false}});
}

TEST_CASE("clipping scales a long gradient to the given norm and leaves a short one") {
  const std::vector<float> g{3, 4};
  CHECK(squared_norm(g) == 25);
  CHECK(clip_scale(25, 2.5) == 0.5);
  CHECK(clip_scale(25, 10) == 1);
  CHECK(clip_scale(25, 0) == 1);  // off
}
