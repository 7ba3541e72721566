#include "planner/advice.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include "planner/explained.h"
#include "sim/base/random.h"

// What to measure first.
using namespace reckon;
using namespace reckon::test;

TEST_CASE("a regression keeps what a column explains and leaves chance out") {
  std::vector<double> x, square, noise, exact, noisy;
  RandomStream stream(7, 0, Purpose{"advice test"}, 0);
  double mean = 0;
  for (int k = 0; k < 400; ++k) {
    x.push_back(stream.normal());
    square.push_back(x.back() * x.back());
    noise.push_back(stream.normal());
    exact.push_back(3 + 2 * x.back() - square.back());
    noisy.push_back(5 + noise.back());
    mean += noisy.back() / 400;
  }
  const auto fitted = planner::explained_by(exact, {x, square});
  for (std::size_t k = 0; k < fitted.size(); ++k)
    REQUIRE(fitted[k] == Approx(exact[k]).margin(1e-9));
  // What the columns say nothing of stays its mean.
  const auto flat = planner::explained_by(noisy, {x, square});
  for (const double v : flat) REQUIRE(v == Approx(mean));
}

TEST_CASE("what is expected of a cost with a heavy tail stays a cost") {
  std::vector<double> x, square, cost;
  RandomStream stream(7, 0, Purpose{"advice test"}, 1);
  double mean = 0;
  for (int k = 0; k < 1000; ++k) {
    x.push_back(stream.normal());
    square.push_back(x.back() * x.back());
    // A few draws are a hundred times the median, as where nodes are taken back within minutes.
    cost.push_back(400 * std::exp(1.5 * x.back() + 0.3 * stream.normal()));
    mean += cost.back() / 1000;
  }
  const auto line = planner::explained_by(cost, {x, square});
  REQUIRE(*std::ranges::min_element(line) < 0);  // what would be called a saving
  const auto expected = planner::expected_given(cost, {x, square});
  double of_expected = 0;
  for (std::size_t k = 0; k < expected.size(); ++k) {
    const double truth = 400 * std::exp(1.5 * x[k] + 0.5 * 0.3 * 0.3);
    REQUIRE(expected[k] > 0.7 * truth);
    REQUIRE(expected[k] < 1.4 * truth);
    of_expected += expected[k] / 1000;
  }
  CHECK(of_expected == Approx(mean));
  // Where something costs nothing there is no logarithm.
  cost.front() = 0;
  CHECK(planner::expected_given(cost, {x, square}) == planner::explained_by(cost, {x, square}));
}

namespace {

bool measures(const planner::Answer& answer, planner::MeasurementKind kind) {
  return std::ranges::any_of(answer.measurements,
                             [&](const planner::Measurement& m) { return m.kind == kind; });
}

}  // namespace

TEST_CASE("where the rate of reclaims decides, watching a spot node is what to measure") {
  SmallSpace s = one_machine();
  s.pricing = {"on_demand", "spot"};
  // Without checkpoints spot pays off for short trainings only: how short, the assumed law decides.
  const auto text = [&](int megasamples, const std::string& law) {
    std::string t = small_text(s) + law;
    t.replace(t.find("40M"), 3, fmt::format("{}M", megasamples));
    const std::string strategy = "  strategy: {kind: single}\n";
    t.replace(t.find(strategy), strategy.size(), strategy + "  checkpoint: {interval: none}\n");
    return t;
  };
  int found = 0;
  for (const int megasamples : {200, 400, 800, 1200, 1600, 2400}) {
    const planner::Answer answer = explained(text(megasamples, ""), shipped_catalog(), 200);
    if (!measures(answer, planner::MeasurementKind::reclaims)) continue;
    ++found;
    // Whoever says the law has nothing to learn of it.
    const planner::Answer known =
        explained(text(megasamples, "disruptions: {preemption: !exponential {mean: 12h}}\n"),
                  shipped_catalog(), 200);
    CHECK_FALSE(measures(known, planner::MeasurementKind::reclaims));
  }
  CHECK(found > 0);
}

TEST_CASE("where the network decides between one node and two, it is what to measure") {
  int found = 0;
  for (const int width : {1000, 4000, 8000, 12'000, 16'000, 24'000}) {
    SmallSpace s = one_machine();
    s.objective = "time";
    const auto answer_for = [&](int nodes) {
      s.nodes_high = nodes;
      std::string text = small_text(s);
      const std::string was = "{linear: 10}";
      text.replace(text.find(was), was.size(),
                   fmt::format("{{linear: {}}}, {{linear: 10}}", width));
      return explained(text, shipped_catalog(), 200);
    };
    CHECK_FALSE(measures(answer_for(1), planner::MeasurementKind::network));
    found += measures(answer_for(2), planner::MeasurementKind::network) ? 1 : 0;
  }
  CHECK(found > 0);
}

TEST_CASE(
    "what is worth measuring: chances, savings and worth agree, certain numbers are worth "
    "nothing") {
  SmallSpace s = one_machine();
  s.machines = {"n1-standard-8", "n1-standard-16"};
  s.accelerators = {"T4", "V100-SXM2-16", "P100-PCIE-16"};
  s.pricing = {"on_demand", "spot"};
  s.nodes_high = 2;
  const planner::Answer answer = explained(small_text(s), shipped_catalog(), 400);
  REQUIRE_FALSE(answer.measurements.empty());
  double before = std::numeric_limits<double>::infinity();
  for (const planner::Measurement& m : answer.measurements) {
    CHECK(m.worth == Approx(m.share * m.saves));
    CHECK(m.worth > 0);
    CHECK(m.worth <= before);
    before = m.worth;
    CHECK(m.share <= 1);
    CHECK_FALSE(m.reveals.empty());
    REQUIRE(m.instead);
    CHECK(planner::texts(m.instead->result.changes) != sensitivity_choice(answer));
    REQUIRE(m.costs);
    CHECK(m.costs->v > 0);
    CHECK(m.worth < answer.plans.front().result.score);  // nothing saves more than all
  }
  CHECK(explained(small_text(s), shipped_catalog(), 50).measurements.empty());
}
