#include "sim/accuracy/scoring/accuracy_modes.h"

#include <catch2/catch.hpp>
#include <cmath>

using namespace reckon;

namespace {

ScoredRun run(int accelerators, double measured, double predicted, double micro_batch = 32) {
  static int line = 1;
  ScoredRun r;
  r.at.line = ++line;
  r.at.source = "s";
  r.at.trust = 'A';
  r.at.run.accelerator = "T4";
  r.at.run.model = "resnet50";
  r.at.run.accelerators = accelerators;
  r.at.run.nodes = accelerators > 8 ? 2 : 1;
  r.at.run.micro_batch = r.at.run.batch_per_accelerator = micro_batch;
  r.measured = measured;
  r.predicted = predicted;
  r.low = predicted * 0.8;
  r.high = predicted * 1.2;
  return r;
}

/// Of a step of which the links take as long as the devices, one after the other.
Slowing half_links() {
  std::array<double, Slowing::kFactors.size()> log_rates{};
  for (std::size_t i = 0; i < log_rates.size(); ++i)
    log_rates[i] = -std::log((1 + Slowing::kFactors[i]) / 2);
  return Slowing(log_rates);
}

}  // namespace

TEST_CASE("what one accelerator measures says nothing of the links of many") {
  // One is half as fast as predicted. Of eight, whose links take half of the step, the devices'
  // half doubles: a step of 1 + 1 becomes one of 2 + 1.
  ScoredRun one = run(1, 25, 50), eight = run(8, 100, 200);
  eight.slowing = half_links();
  const ScoredRun runs[] = {one, eight};
  const auto rest = warm(runs, 1);
  REQUIRE(rest.size() == 1);
  CHECK(rest[0].predicted == Approx(200 * 2.0 / 3).epsilon(1e-3));
  CHECK(rest[0].low == Approx(rest[0].predicted * 0.8).epsilon(1e-9));
}

TEST_CASE("a run that waits for its links speaks of them too") {
  // Devices and links weigh the same: both are taken for 1.5 times slower, as nearly as straight
  // pieces between the factors that were asked tell them apart.
  const Slowness both = half_links().explained(-std::log(1.5));
  CHECK(both.devices == Approx(std::log(1.5)).epsilon(0.1));
  CHECK(both.links == Approx(std::log(1.5)).epsilon(0.1));
  CHECK(half_links().log_rate(both) == Approx(-std::log(1.5)).epsilon(1e-9));
  // Both slower by a factor: the step is, whatever it is made of.
  CHECK(half_links().log_rate({1, 1}) == Approx(-1));
  const Slowness alone = Slowing().explained(0.7);
  CHECK(alone.devices == Approx(-0.7).epsilon(1e-6));
  CHECK(std::abs(alone.links) < 1e-6);
  CHECK(half_links().explained(0).devices == Approx(0).margin(1e-6));
}

TEST_CASE("one measured run on the fewest accelerators corrects the others of its group") {
  // Predicted 25 % fast on one: the factor is 0.8; on eight 400 becomes 320.
  const ScoredRun runs[] = {run(8, 330, 400), run(1, 40, 50), run(4, 170, 200)};
  const auto rest = warm(runs, 1);
  REQUIRE(rest.size() == 2);
  CHECK(rest[0].at.run.accelerators == 8);
  CHECK(rest[0].predicted == Approx(320));
  CHECK(rest[1].predicted == Approx(160));
  CHECK(at_larger_scale(rest, runs, 1).size() == 2);
}

TEST_CASE("the calibration point has the batch that most runs of the group have") {
  const ScoredRun runs[] = {run(1, 10, 20, 8), run(1, 40, 50, 32), run(8, 330, 400, 32)};
  const auto rest = warm(runs, 1);
  REQUIRE(rest.size() == 2);
  CHECK(rest[1].predicted == Approx(320));
  // The other run on one accelerator was predicted too, but is no larger.
  CHECK(at_larger_scale(rest, runs, 1).size() == 1);
}

TEST_CASE("two measured runs give the geometric mean of their factors") {
  // Factors 0.5 and 2: their mean is 1.
  const ScoredRun runs[] = {run(1, 50, 100), run(2, 200, 100), run(8, 330, 400)};
  const auto rest = warm(runs, 2);
  REQUIRE(rest.size() == 1);
  CHECK(rest[0].predicted == Approx(400));
  CHECK(warm(runs, 3).empty());
}

TEST_CASE("regret is what the layout of the best prediction loses to the fastest measured one") {
  // Layouts of one group by micro batch: 64 is predicted fastest and measured at 90 of 100.
  ScoredRun a = run(8, 100, 95, 32), b = run(8, 90, 99, 64), c = run(8, 50, 60, 16);
  ScoredRun alone = run(4, 10, 10);
  const ScoredRun runs[] = {a, b, c, alone};
  const Regret regret = regret_of(runs);
  CHECK(regret.one_node.groups == 1);
  CHECK(regret.one_node.mean == Approx(100.0 / 90 - 1));
  CHECK(regret.many_nodes.groups == 0);
  // Another framework is no layout to choose.
  ScoredRun other = c;
  other.at.run.stack = "tf2";
  const ScoredRun frameworks[] = {a, other};
  CHECK(regret_of(frameworks).one_node.groups == 0);
  for (ScoredRun* r : {&a, &b, &c}) r->at.trust = 'C';
  const ScoredRun weak[] = {a, b, c};
  CHECK(regret_of(weak).one_node.groups == 0);
  CHECK(regret_of(weak).weak.groups == 1);
}
