#include <catch2/catch.hpp>

#include "gpt_step_model.h"
#include "sim/step/step_model.h"

using namespace reckon;
using namespace reckon::test;

namespace {

/// Finish of the last pass of a pipeline whose stages take f forward and b backward, simulated pass
/// by pass in 1F1B or GPipe order on delays alone.
double simulated(int stages, int micro_batches, double f, double b, bool gpipe) {
  Network network;
  ActivityGraph graph;
  struct Pass {
    bool forward;
    int micro_batch;
  };
  const auto order_of = [&](int s) {
    std::vector<Pass> order;
    const int warm = gpipe ? micro_batches : std::min(micro_batches, stages - s - 1);
    for (int m = 0; m < warm; ++m) order.push_back({true, m});
    for (int m = warm; m < micro_batches; ++m) {
      order.push_back({true, m});
      order.push_back({false, m - warm});
    }
    for (int m = gpipe ? 0 : micro_batches - warm; m < micro_batches; ++m)
      order.push_back({false, m});
    return order;
  };
  std::vector<std::vector<std::optional<ActivityId>>> done[2];
  for (auto& d : done)
    d.assign(std::size_t(stages),
             std::vector<std::optional<ActivityId>>(std::size_t(micro_batches)));
  std::vector<std::size_t> next(std::size_t(stages), 0);
  std::vector<std::vector<Pass>> orders;
  for (int s = 0; s < stages; ++s) orders.push_back(order_of(s));
  std::vector<std::optional<ActivityId>> last{std::size_t(stages)};
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < std::size_t(stages); ++s) {
      while (next[s] < orders[s].size()) {
        const Pass p = orders[s][next[s]];
        const auto m = std::size_t(p.micro_batch);
        std::vector<ActivityId> after;
        if (last[s]) after.push_back(*last[s]);
        const bool has_neighbour = p.forward ? s > 0 : s + 1 < std::size_t(stages);
        if (has_neighbour) {
          const auto& from = done[p.forward][p.forward ? s - 1 : s + 1][m];
          if (!from) break;
          after.push_back(*from);
        }
        last[s] = done[p.forward][s][m] = graph.add({.delay = Seconds{p.forward ? f : b}}, after);
        ++next[s];
        moved = true;
      }
    }
  }
  double end = 0;
  for (const Seconds t : make_fluid_network()->run(network, graph)) end = std::max(end, t.count());
  return end;
}

}  // namespace

TEST_CASE("the pipeline's time is that of its passes, one by one") {
  // m (f + b) + (p - 1)(f + b) for GPipe and 1F1B with stages alike.
  for (const int p : {1, 2, 4, 8}) {
    for (const int m : {1, 3, 8, 20}) {
      const double expected = (m + p - 1) * 3.0;
      CHECK(simulated(p, m, 1, 2, false) == Approx(expected));
      CHECK(simulated(p, m, 1, 2, true) == Approx(expected));
    }
  }
}

TEST_CASE("the bubble is (p - 1) / m of the compute, 1 / v of that interleaved") {
  Layout l;
  l.pipeline = 8;
  l.micro_batches = 32;
  const StepEstimate plain = step_model_gpt().estimate(l);
  // The stage with the head, 5 blocks and a product of 50,000 by 5,120, sets the pace: the others
  // take a little less. Transfers are part of a pass.
  const double pass = (plain.compute + plain.exposed.pipeline).count() / 32;
  CHECK(plain.bubble.count() < 7 * pass);
  CHECK(plain.bubble.count() > 0.85 * 7 * pass);
  l.schedule = PipelineSchedule::interleaved;
  l.interleave = 5;  // 40 blocks
  const StepEstimate interleaved = step_model_gpt().estimate(l);
  CHECK(interleaved.bubble.count() == Approx(plain.bubble.count() / 5).epsilon(0.08));
  CHECK(interleaved.step < plain.step);
}
