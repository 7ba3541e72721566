#include "sim/step/pipeline_passes.h"

#include <catch2/catch.hpp>
#include <map>
#include <optional>

#include "sim/step/memory/layout_memory.h"
#include "sim/step/pipeline_span.h"

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

namespace {

std::vector<StagePasses> even(int stages, double forward, double backward) {
  return std::vector<StagePasses>(std::size_t(stages), {Seconds{forward}, Seconds{backward}});
}

double span(const Layout& l, double transfer) {
  return pipeline_span(l, even(l.pipeline, 1, 2), Seconds{transfer}).count();
}

}  // namespace

TEST_CASE("a pipeline whose transfers take no time takes its schedule's time") {
  using enum PipelineSchedule;
  for (const int p : {1, 2, 3, 4})
    for (const std::int64_t m : {1, 4, 12, 100}) {
      CHECK(span(pipeline(gpipe, p, m), 0) == Approx(3.0 * double(m + p - 1)));
      CHECK(span(pipeline(one_forward_one_backward, p, m), 0) == Approx(3.0 * double(m + p - 1)));
      if (p > 1 && m % p == 0)
        CHECK(span(pipeline(interleaved, p, m, 2), 0) ==
              Approx(3.0 * double(m) + 3.0 * (p - 1) / 2));
    }
}

TEST_CASE("transfers that a stage sends beside its next pass, by hand") {
  using enum PipelineSchedule;
  // One micro-batch: there and back through every stage, with every transfer on the way.
  CHECK(span(pipeline(one_forward_one_backward, 4, 1), 0.5) == Approx(12 + 6 * 0.5));
  // F0 at 0-1, its transfer arrives at 1.5; F1 at 1-2, arrives at 2.5. The second stage:
  // F0 1.5-2.5, B0 2.5-4.5 arrives at 5; F1 4.5-5.5, B1 5.5-7.5 arrives at 8. The first: B0 5-7, B1
  // 8-10.
  CHECK(span(pipeline(one_forward_one_backward, 2, 2), 0.5) == Approx(10));
  // GPipe keeps the stage busy: forward passes run at max(1, t) each.
  CHECK(span(pipeline(gpipe, 2, 8), 0.5) == Approx(8 + 1 + 16 + 2 + 2 * 0.5));
  // A link that is slower than a pass sets the pace, in both directions.
  CHECK(span(pipeline(gpipe, 2, 8), 3) == Approx(1 + 8 * 3.0 + 1 + 2 + 8 * 3.0 + 2));
}

TEST_CASE("of many micro-batches each takes as long as the ones before it") {
  using enum PipelineSchedule;
  for (const double transfer : {0.2, 0.9, 2.5}) {
    // The steady state of 1F1B on even stages takes no less than max(c, 2 t, c + 2 t (p - 1) / p)
    // a micro-batch, and little more where transfers in both directions meet on a link.
    const int p = 4;
    const auto at = [&](std::int64_t m) {
      return span(pipeline(one_forward_one_backward, p, m), transfer);
    };
    const double each = (at(600) - at(400)) / 200;
    const double least = std::max({3.0, 2 * transfer, 3 + 2 * transfer * (p - 1) / p});
    CHECK(each > least * (1 - 1e-9));
    CHECK(each < 1.02 * least);
    CHECK((at(60) - at(40)) / 20 == Approx(each).epsilon(0.05));
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
