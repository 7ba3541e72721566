#include <catch2/catch.hpp>

#include "gpt_step_model.h"
#include "sim/step/step_model.h"

// What a layout's ranks say to each other, and what of it a step waits for.
using namespace reckon;
using namespace reckon::test;

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
