#include "sim/step/step_model.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "gpt_step_model.h"

using namespace reckon;
using namespace reckon::test;

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

TEST_CASE("memory of layouts that split blocks alike is what each has by itself") {
  const StepModel model(zoo_model("mixtral_8x7b").value(), setting());
  LayoutMemory memory(model);
  // Twice: made, then looked up.
  for (int again = 0; again < 2; ++again)
    for (const int tensor : {1, 4})
      for (const int context : {1, 2})
        for (const int expert : {1, 4})
          for (const Recompute mode : {Recompute::none, Recompute::selective, Recompute::full})
            for (const int batch : {1, 3})
              for (const int stage : {0, 3}) {
                Layout l;
                l.data = 4;
                l.tensor = tensor;
                l.context = context;
                l.expert = expert;
                l.recompute = mode;
                l.zero_stage = stage;
                l.micro_batch = batch;
                l.sequence_parallel = tensor > 1 && batch > 1;
                const MemoryEstimate at = memory.at(l), alone = model.memory(l);
                CHECK(at.required() == alone.required());
                CHECK(at.activations == alone.activations);
                CHECK(at.gathered == alone.gathered);
              }
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

TEST_CASE("fp32 gradients of a 16-bit model take 18 bytes a parameter, 6 and 12 / d with ZeRO 1") {
  // [Megatron Core, distributed optimizer, "bf16 parameters, fp32 gradients"]
  StepSetting s = setting();
  s.wide_sums = WideSums::gradients;
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

TEST_CASE("with all sums in fp32 gathers and tensor ranks send twice as much, pipelines do not") {
  const ModelGraph graph = zoo_model("gpt3_1_3b").value();
  const auto sent = [&](const Layout& l, WideSums wide) {
    StepSetting s = setting();
    s.wide_sums = wide;
    return StepModel(graph, s).estimate(l).sent_per_worker.v;
  };
  Layout cut;
  cut.data = 8;
  cut.zero_stage = 3;
  CHECK(sent(cut, WideSums::all) == Approx(2 * sent(cut, WideSums::none)));
  // Gathered forward and backward in 16 bits, scattered in fp32.
  CHECK(sent(cut, WideSums::gradients) == Approx(4.0 / 3 * sent(cut, WideSums::none)));
  Layout tensor;
  tensor.tensor = 8;
  CHECK(sent(tensor, WideSums::all) == Approx(2 * sent(tensor, WideSums::none)));
  CHECK(sent(tensor, WideSums::gradients) == sent(tensor, WideSums::none));
  Layout stages;
  stages.pipeline = 4;
  stages.micro_batches = 8;
  CHECK(sent(stages, WideSums::all) == sent(stages, WideSums::none));
}
