#include "sim/step/measured_compute.h"

#include <catch2/catch.hpp>

#include "support/plans.h"

using namespace reckon;

namespace {

/// A product takes a nanosecond a multiply-add, memory a nanosecond a byte.
WorkerRates rates() {
  WorkerRates r;
  r.products = r.each = {{8}, {Seconds{512e-9}}};
  r.streams = {{{Bytes{1e6}, Seconds{1e-3}}}};
  return r;
}

/// A linear layer of 4 to 3, for one sample.
LayerWork linear() {
  return {.forward = Flops{24},
          .backward = Flops{48},
          .elements_in = 4,
          .elements_out = 3,
          .weights_read = 12,
          .work = WorkKind::matmul};
}

}  // namespace

TEST_CASE("a linear layer on a probed machine is one product forward and two backward") {
  const LayerCost cost = measured_cost(linear(), 10, rates());
  // 10 x 3 x 4 multiply-adds, and 30 outputs of 4 bytes read and written for the bias.
  CHECK(cost.forward.count() == Approx(120e-9 + 240e-9));
  CHECK(cost.backward.count() == Approx(240e-9));
  CHECK(cost.backward_kernels == 2);
}

TEST_CASE("frozen weights have no product of their own") {
  LayerWork work = linear();
  work.backward = Flops{24};
  work.frozen = true;
  CHECK(measured_cost(work, 10, rates()).backward.count() == Approx(120e-9));
}

TEST_CASE("a convolution gathers the patches under its outputs") {
  // 3 x 3 over 5 x 5 points of 2 channels to 4.
  const LayerWork conv{.forward = Flops{2 * 25 * 4 * 18},
                       .backward = Flops{4 * 25 * 4 * 18},
                       .elements_in = 50,
                       .elements_out = 100,
                       .weights_read = 72,
                       .work = WorkKind::convolution};
  const double product = 25 * 4 * 18 * 1e-9, gather = 2 * 25 * 18 * 4 * 1e-9;
  const LayerCost cost = measured_cost(conv, 1, rates());
  CHECK(cost.forward.count() == Approx(product + gather + 800e-9));
  CHECK(cost.backward.count() == Approx(2 * (product + gather)));
}

TEST_CASE("other layers read and write their activations once") {
  const LayerWork relu{
      .forward = Flops{10}, .backward = Flops{10}, .elements_in = 10, .elements_out = 10};
  const LayerCost cost = measured_cost(relu, 2, rates());
  CHECK(cost.forward.count() == Approx(160e-9));
  CHECK(cost.backward.count() == Approx(240e-9));
}

TEST_CASE("passes that were measured are what the step takes") {
  Plan plan = test::make_round_plan(test::small_mlp(), StrategyKind::single, 1);
  PlannedPool& pool = plan.pools.front();
  pool.accelerator.reset();
  pool.measured_rates = std::make_shared<const WorkerRates>(rates());
  set_measured_passes(plan, Seconds{0.5});
  CHECK(passes_time(plan.pools.front(), plan.jobs.front()).count() == Approx(0.5));
}

TEST_CASE("CPUs imitate 16 bits: they compute in float, and round what layers make") {
  const bool probed = GENERATE(false, true);
  const auto planned = [&](Precision precision) {
    Plan plan = test::make_round_plan(test::small_mlp(), StrategyKind::single, 1);
    PlannedPool& pool = plan.pools.front();
    pool.accelerator.reset();
    pool.cpu_flops_per_vcpu = Fact<double>{1e9};
    pool.cpu_memory_bandwidth_per_vcpu = Fact<BytesPerSecond>{1.0_GBps};
    plan.only_job().strategy.accelerators_per_worker = 0;
    plan.only_job().precision = precision;
    if (probed) pool.measured_rates = std::make_shared<const WorkerRates>(rates());
    return plan;
  };
  const auto passes = [&](Precision precision) {
    const Plan plan = planned(precision);
    return passes_time(plan.pools.front(), plan.jobs.front()).count();
  };
  const double exact = passes(Precision::fp32);
  CHECK(passes(Precision::bf16) > exact);
  CHECK(passes(Precision::bf16) == passes(Precision::fp16));
  CHECK(passes(Precision::bf16) < 3 * exact);
  const PlannedWorkload job = planned(Precision::bf16).only_job();
  const ElementSizes bf16 = element_sizes(job);
  CHECK(bf16.activation == Bytes{4});
  CHECK(bf16.gradient == Bytes{4});  // what is sent
  CHECK(bf16.weight + bf16.master == Bytes{8});
  CHECK_FALSE(element_sizes(planned(Precision::fp32).only_job()).rounds);
  if (!probed) return;
  Plan measured = planned(Precision::bf16);
  set_measured_passes(measured, Seconds{0.5});
  CHECK(passes_time(measured.pools.front(), measured.jobs.front()).count() == Approx(0.5));
}
