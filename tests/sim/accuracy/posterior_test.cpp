#include "sim/accuracy/evidence/posterior.h"

#include <catch2/catch.hpp>
#include <cmath>

using namespace reckon;

namespace {

/// Points on a line with k(x, y) = exp(-|x - y|).
struct Line {
  std::vector<double> at;
  std::vector<Observation> seen;
  Posterior posterior() const {
    return Posterior(
        seen, [this](std::size_t i, std::size_t j) { return std::exp(-std::abs(at[i] - at[j])); });
  }
  std::vector<double> with(double x) const {
    std::vector<double> k;
    for (const double y : at) k.push_back(std::exp(-std::abs(x - y)));
    return k;
  }
  double variance(double x) const {
    const auto k = with(x);
    return 1 - posterior().explained(k, k);
  }
};

}  // namespace

TEST_CASE("without observations a posterior is its prior") {
  const Line line;
  CHECK(line.posterior().mean({}) == 0);
  CHECK(line.variance(3) == 1);
}

TEST_CASE("one observation draws what is like it by k / (1 + noise^2)") {
  // k = exp(-1), prior variance 1, noise 1/2: mean 0.1 k / 1.25, variance 1 - k^2 / 1.25. The
  // reweighting of an observation within its noise: (5 / (4 + r^2 / n^2)) is capped at 1.
  const Line line{{0}, {{0.1, 0.5}}};
  const double k = std::exp(-1);
  CHECK(line.posterior().mean(line.with(1)) == Approx(0.1 * k / 1.25));
  CHECK(line.variance(1) == Approx(1 - k * k / 1.25));
}

TEST_CASE("an observation more never makes a variance larger, whatever its value") {
  Line line;
  double before = 1;
  for (int i = 0; i < 30; ++i) {
    line.at.push_back(0.37 * ((i * 17) % 30));
    line.seen.push_back({i % 5 == 0 ? 9.0 : 0.1 * i, 0.1});
    const double now = line.variance(4.1);
    CHECK(now <= before + 1e-12);
    before = now;
  }
}

TEST_CASE("an observation that its neighbours contradict weighs little in the mean") {
  Line line;
  for (int i = 0; i < 20; ++i) {
    line.at.push_back(0.001 * i);
    line.seen.push_back({i == 10 ? 3.0 : 0.2, 0.05});
  }
  const Posterior p = line.posterior();
  CHECK(p.weight(10) < 0.1);
  CHECK(p.weight(3) > 0.9);
  CHECK(p.mean(line.with(0.0105)) == Approx(0.2).margin(0.05));
}
