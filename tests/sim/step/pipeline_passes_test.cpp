#include "sim/step/pipeline_passes.h"

#include <catch2/catch.hpp>
#include <map>
#include <optional>

#include "sim/step/memory/layout_memory.h"

using namespace reckon;

namespace {

Layout pipeline(PipelineSchedule schedule, int stages, std::int64_t micro_batches, int parts = 1) {
  return {.pipeline = stages,
          .micro_batches = micro_batches,
          .schedule = schedule,
          .interleave = parts};
}

/// When each stage is done with all, if a forward pass through a stage takes 1, a backward pass 2,
/// and each waits for what it needs: of parts, the share of a stage. Nothing: it never ends.
std::optional<double> makespan(const Layout& l) {
  struct Stage {
    std::vector<PipelinePass> passes;
    std::size_t next = 0;
    double free = 0;
  };
  std::vector<Stage> stages;
  for (int s = 0; s < l.pipeline; ++s) stages.push_back({passes_of_stage(l, s)});
  std::map<std::tuple<bool, std::int64_t, int>, double> done;  // direction, micro-batch, whole part
  const int last = l.pipeline * l.interleave - 1;
  for (bool moved = true; moved;) {
    moved = false;
    for (int s = 0; s < l.pipeline; ++s) {
      Stage& stage = stages[std::size_t(s)];
      while (stage.next < stage.passes.size()) {
        const PipelinePass& pass = stage.passes[stage.next];
        const int part = pass.part * l.pipeline + s;
        double from = stage.free;
        const auto needs = [&](bool forward, int of) {
          const auto found = done.find({forward, pass.micro_batch, of});
          if (found == done.end()) return false;
          from = std::max(from, found->second);
          return true;
        };
        if (pass.forward ? part > 0 && !needs(true, part - 1)
                         : !needs(true, part) || (part < last && !needs(false, part + 1)))
          break;
        stage.free = from + (pass.forward ? 1.0 : 2.0) / l.interleave;
        done[{pass.forward, pass.micro_batch, part}] = stage.free;
        ++stage.next;
        moved = true;
      }
    }
  }
  double end = 0;
  for (const Stage& stage : stages) {
    if (stage.next < stage.passes.size()) return std::nullopt;
    end = std::max(end, stage.free);
  }
  return end;
}

/// Activations that a stage keeps at most, of all parts at once.
std::int64_t most_at_once(const Layout& l, int stage) {
  std::int64_t now = 0, most = 0;
  for (const PipelinePass& pass : passes_of_stage(l, stage)) {
    now += pass.forward ? 1 : -1;
    most = std::max(most, now);
  }
  return most;
}

}  // namespace

TEST_CASE("every schedule's bubble is the forecast's: (p - 1) / v passes") {
  using enum PipelineSchedule;
  for (const int p : {1, 2, 3, 4})
    for (const std::int64_t m : {4, 8, 12}) {
      const double passes = 3.0 * double(m);
      CHECK(makespan(pipeline(gpipe, p, m)) == Approx(passes + 3 * (p - 1)));
      CHECK(makespan(pipeline(one_forward_one_backward, p, m)) == Approx(passes + 3 * (p - 1)));
      for (const int v : {2, 3})
        if (p > 1 && m % p == 0)
          CHECK(makespan(pipeline(interleaved, p, m, v)) == Approx(passes + 3.0 * (p - 1) / v));
    }
}

TEST_CASE("a stage keeps the activations of as many passes as the forecast counts") {
  using enum PipelineSchedule;
  std::vector<Layout> layouts{pipeline(gpipe, 3, 5),
                              pipeline(one_forward_one_backward, 4, 9),
                              pipeline(one_forward_one_backward, 4, 2),
                              pipeline(interleaved, 2, 8, 2),
                              pipeline(interleaved, 4, 8, 2),
                              pipeline(interleaved, 4, 16, 3)};
  for (const Layout& l : layouts)
    for (int stage = 0; stage < l.pipeline; ++stage) {
      INFO("stage " << stage << " of " << l.pipeline << " x " << l.interleave << ", "
                    << l.micro_batches << " micro-batches");
      std::int64_t counted = 0;
      for (int part = 0; part < l.interleave; ++part) counted += passes_in_flight(l, stage, part);
      CHECK(most_at_once(l, stage) == counted);
      const auto by_part = most_in_flight(l, stage);
      if (l.interleave == 1) CHECK(by_part == std::vector<std::int64_t>{counted});
      // The last part's is freed first: it never has more than when the first backward pass begins.
      CHECK(by_part.back() == passes_in_flight(l, stage, l.interleave - 1));
    }
}

TEST_CASE("1f1b of two stages and three micro-batches, written out") {
  const auto order = [](int stage) {
    std::string text;
    for (const PipelinePass& p :
         passes_of_stage(pipeline(PipelineSchedule::one_forward_one_backward, 2, 3), stage))
      text += (p.forward ? "F" : "B") + std::to_string(p.micro_batch);
    return text;
  };
  CHECK(order(0) == "F0F1B0F2B1B2");
  CHECK(order(1) == "F0B0F1B1F2B2");
}
