#include "sim/step/step_model.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "sim/model/zoo/zoo.h"
#include "support/plans.h"

using namespace reckon;
using namespace reckon::test;

namespace {

/// Eight accelerators a node, half of every peak, whatever the size of a kernel.
StepSetting setting() {
  PlannedPool pool = round_pool("workers", Role::worker, 64, 8, Precision::bf16);
  pool.accelerator->memory = Fact<Bytes>{80.0_GiB};
  StepSetting s;
  s.processor = processor_of(pool, Precision::bf16);
  s.memory = 80.0_GiB;
  s.fabric = {.nodes = 64,
              .ranks_per_node = 8,
              .peer = 200.0_GBps,
              .nic = 100.0_GBps,
              .peer_latency = Seconds{5e-6},
              .nic_latency = Seconds{1e-5}};
  s.framework.reserve = Fact<Bytes>{0.75_GB};
  s.framework.step_jitter = Fact<double>{0.03};
  s.framework.expert_imbalance = Fact<double>{0.1};
  s.host_link = 10.0_GBps;
  s.host_memory = 20.0_GBps;
  return s;
}

/// The same with a host that needs so long for each kernel.
StepSetting with_host(Seconds host) {
  StepSetting s = setting();
  s.processor.efficiency.host = Fact<Seconds>{host};
  return s;
}

const StepModel& step_model_gpt() {
  static const StepModel model(zoo_model("gpt3_13b").value(), setting());
  return model;
}

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

TEST_CASE("a step is the sum of its parts") {
  CHECK(rc::check([] {
    Layout l;
    l.tensor = 1 << *rc::gen::inRange(0, 4);
    l.pipeline = *rc::gen::element(1, 2, 4, 5, 10);
    l.context = *rc::gen::element(1, 2, 4);
    l.data = *rc::gen::inRange(1, 9);
    l.zero_stage = *rc::gen::inRange(0, 4);
    l.micro_batch = *rc::gen::inRange(1, 5);
    l.micro_batches = *rc::gen::inRange(1, 33);
    l.sequence_parallel = l.tensor > 1 && *rc::gen::arbitrary<bool>();
    l.recompute = *rc::gen::element(Recompute::none, Recompute::selective, Recompute::full);
    const StepEstimate e = step_model_gpt().estimate(l);
    const double sum = (e.compute + e.exposed_communication + e.bubble + e.update).count();
    RC_ASSERT(std::abs(e.step.count() - sum) <= 1e-12 * sum);
    RC_ASSERT(e.exposed_communication == e.exposed.total());
    RC_ASSERT(e.mfu > 0 && e.mfu < 0.5);  // efficiencies are half
    RC_ASSERT((e.bubble > Seconds{}) == (l.pipeline > 1));
    RC_ASSERT(std::isfinite(e.step.count()));
    // More micro-batches take longer, and more samples a second.
    Layout more = l;
    more.micro_batches *= 2;
    const StepEstimate twice = step_model_gpt().estimate(more);
    RC_ASSERT(twice.step > e.step);
    RC_ASSERT(twice.samples_per_second.v >= e.samples_per_second.v * (1 - 1e-9));
  }));
}

TEST_CASE("full recomputation runs blocks again, but neither the head nor what no gradient needs") {
  const ModelGraph model = zoo_model("gpt3_13b").value();
  Layout l;
  const Seconds without = step_model_gpt().estimate(l).compute;
  Seconds blocks{}, last_products{};
  const std::string head = model.layers().back().group;
  for (const LayerTime& t : step_model_gpt().layer_times(l)) {
    const Layer& layer = model.layers()[index(t.layer)];
    if (layer.group.empty() || layer.group == head) continue;
    blocks += t.forward;
    if (layer.name.ends_with("mlp.c_proj")) last_products += t.forward;
  }
  REQUIRE(last_products > 0.2 * blocks);
  l.recompute = Recompute::full;
  CHECK((step_model_gpt().estimate(l).compute - without).count() == Approx(blocks.count()));
  l.stops_recomputing = true;
  const Seconds saved = blocks - (step_model_gpt().estimate(l).compute - without);
  CHECK(saved >= last_products);  // and the sums behind them
  CHECK(saved < 1.05 * last_products);
}

TEST_CASE("gathers behind arithmetic slow it down, and only those") {
  StepSetting s = setting();
  s.framework.overlap_slowdown = Fact<double>{0.5};
  const StepModel model(zoo_model("gpt3_13b").value(), s);
  Layout l;
  CHECK(model.estimate(l).exposed.contention == Seconds{});  // one rank
  l.data = 8;
  l.micro_batch = 4;
  l.zero_stage = 3;
  const StepEstimate e = model.estimate(l), plain = step_model_gpt().estimate(l);
  const Seconds hidden = e.communication - e.exposed.parameters - e.exposed.gradients;
  // Two gathers and a scatter of 12.85 B parameters in 2 bytes at 200 GB/s.
  const double inside = 3.0 * 7 / 8 * 2 * 12.85e9 / 200e9;
  const double most = 0.5 * std::min(hidden.count(), inside);
  CHECK(e.exposed.contention.count() <= most * 1.02);
  CHECK(e.exposed.contention.count() > 0.7 * most);  // matrix products are most of it
  CHECK((e.step - plain.step).count() == Approx(e.exposed.contention.count()));
}

TEST_CASE("one layout with data alone is data parallelism as multi_worker_mirrored has it") {
  Plan plan = make_round_plan(zoo_model("gpt2_small").value(), StrategyKind::multi_worker_mirrored,
                              4, 8, 0, Precision::bf16);
  plan.jobs[0].optimizer = Optimizer::adamw;
  const auto network = make_fluid_network();
  const StepEstimate mirrored = estimate_step(plan, plan.jobs[0], *network);
  plan.jobs[0].strategy.kind = StrategyKind::model_parallel;
  const StepEstimate layout = estimate_step(plan, plan.jobs[0], *network);
  CHECK(layout.compute.count() == Approx(mirrored.compute.count()).epsilon(1e-9));
  CHECK(layout.update.count() == Approx(mirrored.update.count()).epsilon(1e-9));
  CHECK(layout.communication.count() == Approx(mirrored.communication.count()).epsilon(0.05));
  // Buckets end with blocks here, with layers there.
  CHECK(layout.step.count() == Approx(mirrored.step.count()).epsilon(0.02));
}

namespace {

class TwiceAsLong final : public CollectiveCost {
 public:
  TimedAllReduce all_reduce(const Fabric& f, Bytes size, AllReduceKind kind) const override {
    TimedAllReduce taken = formulas_.all_reduce(f, size, kind);
    taken.time *= 2;
    return taken;
  }
  Seconds all_gather(const Fabric& f, Bytes size) const override {
    return 2 * formulas_.all_gather(f, size);
  }
  Seconds reduce_scatter(const Fabric& f, Bytes size) const override {
    return 2 * formulas_.reduce_scatter(f, size);
  }
  Seconds all_to_all(const Fabric& f, Bytes size) const override {
    return 2 * formulas_.all_to_all(f, size);
  }
  Seconds send(const Fabric& f, Bytes size) const override { return 2 * formulas_.send(f, size); }
  Seconds ring_hop(const Fabric& f, Bytes size) const override {
    return 2 * formulas_.ring_hop(f, size);
  }
  std::string_view engine() const override { return "twice"; }

 private:
  ClosedForms formulas_;
};

}  // namespace

TEST_CASE("all communication of a layout is asked of whoever answers for the network") {
  Layout l{.data = 4, .tensor = 2, .pipeline = 2, .zero_stage = 1, .micro_batches = 8};
  l.overlap = false;
  const StepEstimate once = step_model_gpt().estimate(l);
  const StepEstimate twice = step_model_gpt().estimate(l, TwiceAsLong{});
  CHECK(once.communication.count() > 0);
  CHECK(twice.communication.count() == Approx(2 * once.communication.count()));
  CHECK(twice.exposed.tensor.count() == Approx(2 * once.exposed.tensor.count()));
  CHECK(twice.exposed.pipeline.count() == Approx(2 * once.exposed.pipeline.count()));
  CHECK(twice.compute == once.compute);
  CHECK(step_model_gpt().estimate(l, ClosedForms{}).step == once.step);
}

TEST_CASE("tensor ranks share the arithmetic and wait for each other") {
  Layout l;
  l.micro_batches = 4;
  const StepEstimate one = step_model_gpt().estimate(l);
  CHECK(one.exposed_communication.count() == 0);
  l.tensor = 8;
  const StepEstimate eight = step_model_gpt().estimate(l);
  // All products are cut; norms and sums are not.
  CHECK(eight.compute.count() > one.compute.count() / 8);
  CHECK(eight.compute.count() < one.compute.count() / 6);
  // [Shoeybi et al. 2019, Sec. 3]: per block two all-reduces forward and two backward of s b h in 2
  // bytes, one for the embedding forward, one for the head's input backward:
  // (4 x 40 + 2) x 2 x 7 (5 us + 2048 x 5120 x 2 / 8 / 200 GB/s)
  const double each = 2 * 7 * (5e-6 + 2048.0 * 5120 * 2 / 8 / 200e9);
  CHECK(eight.exposed.tensor.count() == Approx(4 * 162 * each).epsilon(1e-6));
  // Sequence parallelism moves as much and shares what is not cut [Korthikanti et al. 2022, Sec.
  // 4.2.2].
  l.sequence_parallel = true;
  const StepEstimate sequence = step_model_gpt().estimate(l);
  CHECK(sequence.exposed.tensor.count() == Approx(eight.exposed.tensor.count()).epsilon(0.01));
  CHECK(sequence.compute < eight.compute);
}

TEST_CASE("ZeRO 3 gathers parameters twice a pass, behind compute where there is enough of it") {
  Layout l;
  l.data = 64;
  l.micro_batch = 4;
  l.zero_stage = 3;
  const StepEstimate fast = step_model_gpt().estimate(l);
  CHECK(fast.exposed.parameters < fast.compute * 0.1);
  CHECK(fast.communication > 5 * (fast.exposed.parameters + fast.exposed.gradients));
  StepSetting slow = setting();
  slow.fabric.nic = 1.0_GBps;
  const StepModel on_slow(zoo_model("gpt3_13b").value(), slow);
  const StepEstimate waiting = on_slow.estimate(l);
  // Two gathers and one scatter of 12.9 B parameters in 2 bytes over a ring through 8 nodes' NICs.
  const double wire = 3.0 * 63 / 64 * 2 * 12.85e9 / 1e9;
  CHECK(waiting.communication.count() == Approx(wire).epsilon(0.02));
  CHECK(waiting.step.count() > 0.9 * wire);
  // Accumulation repeats them.
  l.micro_batches = 4;
  CHECK(on_slow.estimate(l).communication.count() == Approx(4 * wire).epsilon(0.02));
  // Stage 1 does not: one scatter of gradients and one gather of parameters a step.
  l.zero_stage = 1;
  CHECK(on_slow.estimate(l).communication.count() == Approx(wire * 2 / 3).epsilon(0.02));
}

TEST_CASE("offloading the optimizer trades memory of the device for time of the host") {
  Layout l;
  l.data = 8;
  l.zero_stage = 2;
  const StepEstimate on_device = step_model_gpt().estimate(l);
  const Bytes before = step_model_gpt().memory(l).required();
  l.offload_optimizer = true;
  CHECK(step_model_gpt().memory(l).optimizer.v == 0);
  CHECK(step_model_gpt().memory(l).required() < before);
  CHECK(step_model_gpt().estimate(l).update > on_device.update);
  // Gradients that take longer than the backward pass are waited for: at stage 2 those of each
  // micro-batch, at stage 1 once. 1 MB/s, so that a backward pass is short beside them.
  StepSetting slow = setting();
  slow.host_link = 0.001_GBps;
  const StepModel on_slow(zoo_model("gpt3_13b").value(), slow);
  l.micro_batches = 4;
  const auto update = [&](int stage) {
    l.zero_stage = stage;
    return on_slow.estimate(l).update.count();
  };
  const double down = double(zoo_model("gpt3_13b").value().parameters()) / 8 * 2 / 1e6;
  CHECK(update(2) - update(1) == Approx(3 * down).epsilon(0.01));
}

TEST_CASE("keys and values go round behind attention, or wait for it on slow links") {
  Layout l;
  l.context = 4;
  l.tensor = 2;
  CHECK(step_model_gpt().estimate(l).exposed.context.count() == 0);
  StepSetting slow = setting();
  slow.fabric.peer = 1.0_GBps;
  const StepModel on_slow(zoo_model("gpt3_13b").value(), slow);
  CHECK(on_slow.estimate(l).exposed.context.count() > 0);
}

TEST_CASE("expert ranks exchange rows four times a layer and carry the busiest rank's load") {
  const StepModel moe(zoo_model("mixtral_8x7b", 4096).value(), setting());
  Layout l;
  l.data = 8;
  const StepEstimate alone = moe.estimate(l);
  CHECK(alone.exposed.expert.count() == 0);
  l.expert = 8;
  const StepEstimate shared = moe.estimate(l);
  // 32 blocks, 4 exchanges of 4096 tokens x 2 experts x 4096 features in 2 bytes, 1.1 of the mean:
  // 5 us + 7/8 of it over 200 GB/s; the combination's input holds its scores too.
  const double once = 5e-6 + 7.0 / 8 * 1.1 * 4096 * 2 * 4096 * 2 / 200e9;
  CHECK(shared.exposed.expert.count() == Approx(32 * 4 * once).epsilon(0.01));
  CHECK(shared.compute > alone.compute);
}

TEST_CASE("a cached layout is the estimated one, and every field tells layouts apart") {
  LayoutCache cache(step_model_gpt());
  Layout l;
  l.data = 4;
  l.micro_batches = 8;
  const Seconds first = cache.at(l).step;
  CHECK(first == step_model_gpt().estimate(l).step);
  CHECK(&cache.at(l) == &cache.at(l));
  for (int Layout::*field : {&Layout::tensor, &Layout::pipeline, &Layout::context,
                             &Layout::micro_batch, &Layout::zero_stage}) {
    Layout other = l;
    other.*field = 2;
    CHECK(cache.at(other).step == step_model_gpt().estimate(other).step);
    CHECK(cache.at(other).step != first);
  }
}

TEST_CASE(
    "where the host is what a micro-batch waits for, its size does not matter, and tensor ranks "
    "add "
    "what issues their collectives") {
  const StepModel slow(zoo_model("gpt3_13b").value(), with_host(Seconds{1.0}));
  Layout l{.data = 8, .tensor = 1, .micro_batch = 1, .micro_batches = 4};
  const Seconds one = slow.estimate(l).compute;
  l.micro_batch = 2;
  CHECK(slow.estimate(l).compute.count() == Approx(one.count()).epsilon(1e-9));
  CHECK(slow.estimate(l).bottleneck == Bottleneck::host);
  // Twice the micro-batches are twice the dispatches; full recomputation issues all but the
  // backward kernels again.
  l.micro_batches = 8;
  CHECK(slow.estimate(l).compute.count() == Approx(2 * one.count()).epsilon(1e-9));
  l.recompute = Recompute::full;
  CHECK(slow.estimate(l).compute > 2.2 * one);
  CHECK(slow.estimate(l).compute < 3.0 * one);
  // Two ranks wait for their collectives as well, and the host's time covers that too, but it
  // issues them: four all-reduces in each of 40 blocks [Shoeybi et al. 2019, Sec. 3], one behind
  // the embedding and one before the head, in each of four micro-batches.
  constexpr double kIssued = 4 * (40 * 4 + 2);  // seconds, at one each
  l.recompute = Recompute::none;
  l.micro_batches = 4;
  l.data = 4;
  l.tensor = 2;
  const auto split = slow.estimate(l);
  CHECK((split.compute + split.exposed.tensor).count() ==
        Approx(one.count() + kIssued).epsilon(1e-9));
  // A fast one changes nothing.
  const StepModel fast(zoo_model("gpt3_13b").value(), with_host(Seconds{1e-9}));
  CHECK(fast.estimate(l).step == step_model_gpt().estimate(l).step);
}

TEST_CASE("without overlap gradients and the gathers for weights' gradients are waited for") {
  Layout l;
  l.data = 4;
  l.tensor = 8;
  l.sequence_parallel = true;
  l.zero_stage = 1;
  l.micro_batches = 4;
  const StepEstimate hidden = step_model_gpt().estimate(l);
  l.overlap = false;
  const StepEstimate waited = step_model_gpt().estimate(l);
  CHECK(waited.exposed.gradients > hidden.exposed.gradients);
  // Forward a gather and a reduce-scatter, backward both and the second gather: 5 to 4 of one size.
  CHECK(waited.exposed.tensor / hidden.exposed.tensor == Approx(1.25).epsilon(0.01));
  CHECK(waited.compute == hidden.compute);
  CHECK(waited.step > hidden.step);
}

TEST_CASE("fp32 gradients of a 16-bit model take 18 bytes a parameter, 6 and 12 / d with ZeRO 1") {
  // [Megatron Core, distributed optimizer, "bf16 parameters, fp32 gradients"]
  StepSetting s = setting();
  s.fp32_gradients = true;
  const ModelGraph graph = zoo_model("gpt3_1_3b").value();
  const StepModel model(graph, s);
  Layout l;
  l.data = 8;
  const auto state = [&] {
    const MemoryEstimate m = model.memory(l);
    return (m.parameters + m.gradients + m.optimizer).v / double(graph.parameters());
  };
  CHECK(state() == Approx(18));
  l.zero_stage = 1;
  CHECK(state() == Approx(6 + 12.0 / 8));
}
