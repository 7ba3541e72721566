#include "sim/step/step.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>
#include <cmath>

#include "sim/step/compute.h"
#include "sim/step/input.h"
#include "sim/step/overlap.h"
#include "sim/step/step_parts.h"
#include "support/plans.h"

using namespace reckon;
using namespace reckon::test;

namespace {

StepEstimate estimate(const Plan& plan, int live = 0) {
  return estimate_step(plan, plan.jobs[0], *make_fluid_network(), live);
}

Plan resnet(StrategyKind kind, int nodes = 1, int per_node = 1, int servers = 0,
            Precision precision = Precision::fp32) {
  return make_round_plan(zoo_model("resnet50").value(), kind, nodes, per_node, servers, precision);
}

}  // namespace

TEST_CASE(
    "a linear layer takes its FLOPs at the achieved rate, or its bytes at the achieved bandwidth") {
  // 784 -> 512 with batch 4096: 2 x 784 x 512 x 4096 = 3.288 GFLOP at 5 TFLOP/s = 657.7 us; bytes
  // (784 + 512) x 4096 x 4 + (784 x 512 + 512) x 4 = 22.84 MB at 500 GB/s = 45.7 us: the FLOPs
  // decide.
  Plan plan = make_round_plan(small_mlp(), StrategyKind::single);
  plan.jobs[0].strategy.layout.micro_batch = 4096;
  const auto processor = processor_of(plan.pools[0], Precision::fp32);
  auto times = compute_times(plan.jobs[0], processor, 4096);
  CHECK(times.layers[0].forward.count() == Approx(3.28833e9 / 5e12).epsilon(1e-4));
  CHECK_FALSE(times.layers[0].bound_by_memory);
  // Batch 1: 0.80 MFLOP = 0.16 us; weights (401,920) and activations (1,296) x 4 bytes = 1.6129 MB
  // = 3.226 us.
  times = compute_times(plan.jobs[0], processor, 1);
  CHECK(times.layers[0].forward.count() == Approx(403216 * 4 / 500e9).epsilon(1e-9));
  CHECK(times.layers[0].bound_by_memory);
}

TEST_CASE("a kernel of half_size FLOPs reaches half of its kind's efficiency") {
  Plan plan = make_round_plan(small_mlp(), StrategyKind::single);
  auto processor = processor_of(plan.pools[0], Precision::fp32);
  const double large = compute_times(plan.jobs[0], processor, 4096).layers[0].forward.count();
  processor.efficiency.half_size = Fact<Flops>{Flops{2.0 * 784 * 512 * 4096}};
  const double halved = compute_times(plan.jobs[0], processor, 4096).layers[0].forward.count();
  CHECK(halved == Approx(2 * large).epsilon(1e-9));
}

TEST_CASE("convolutions of 3 x 3 and stride 1 run faster than all others by the row's factor") {
  LayerWork work{.forward = Flops{1e9}, .backward = Flops{2e9}, .weights_read = 1};
  work.work = WorkKind::convolution;
  Processor core{FlopsPerSecond{1e12}, BytesPerSecond{1e15}, 1, {}};
  core.efficiency.convolution = Fact<double>{0.5};
  core.efficiency.memory = Fact<double>{1.0};
  core.efficiency.winograd = Fact<double>{2.5};
  CHECK(cost_of(work, {}, core, 1).forward.count() == Approx(2e-3));
  work.small_square = true;
  CHECK(cost_of(work, {}, core, 1).forward.count() == Approx(2e-3 / 2.5));
  work.work = WorkKind::matmul;
  core.efficiency.matmul = Fact<double>{0.5};
  CHECK(cost_of(work, {}, core, 1).forward.count() == Approx(2e-3));
}

TEST_CASE("the steps of a recurrence pay for their kernels one after the other, its host once") {
  LayerWork work{.forward = Flops{1e9}, .backward = Flops{2e9}, .weights_read = 1};
  work.work = WorkKind::matmul;
  Processor core{FlopsPerSecond{1e12}, BytesPerSecond{1e15}, 1, {}};
  core.efficiency.matmul = core.efficiency.memory = Fact<double>{1.0};
  core.efficiency.half_size = Fact<Flops>{Flops{1e8}};
  core.efficiency.launch = Fact<Seconds>{Seconds{1e-6}};
  const ElementSizes size{};
  // One kernel: (1e9 + 1e8) / 1e12 + 1 us; backward two: (2e9 + 2e8) / 1e12 + 2 us.
  const LayerCost one = cost_of(work, size, core, 1);
  CHECK(one.forward.count() == Approx(1.1e-3 + 1e-6));
  CHECK(one.backward.count() == Approx(2.2e-3 + 2e-6));
  // Ten steps: ten kernels forward; backward ten, and one more for the weights of all steps.
  work.steps = 10;
  const LayerCost ten = cost_of(work, size, core, 1);
  CHECK(ten.forward.count() == Approx((1e9 + 10e8) / 1e12 + 10e-6));
  CHECK(ten.backward.count() == Approx((2e9 + 11e8) / 1e12 + 11e-6));
  CHECK(ten.forward_kernels == one.forward_kernels);
  CHECK(ten.backward_kernels == one.backward_kernels);
}

TEST_CASE("a pass over the network takes no less than its host needs to issue it") {
  Plan plan = make_round_plan(small_mlp(), StrategyKind::single);
  const auto free = processor_of(plan.pools[0], Precision::fp32);
  const auto device = compute_times(plan.jobs[0], free, 4096);
  CHECK(device.waiting_for_host.count() == 0);
  // A host that needs ten times as long: nothing but its time counts, whatever the batch.
  auto slow = free;
  const double dispatches = 1e9 * device.total().count();  // so that 10 ns each are ten times it
  slow.efficiency.host = Fact<Seconds>{Seconds{10e-9}};
  CHECK(host_time(dispatches, slow).count() == Approx(10 * device.total().count()));
  slow.efficiency.host = Fact<Seconds>{Seconds{1.0}};
  const auto large = compute_times(plan.jobs[0], slow, 4096);
  const auto small = compute_times(plan.jobs[0], slow, 1);
  CHECK(large.total().count() == Approx(small.total().count()).epsilon(1e-9));
  CHECK(large.total().count() == Approx(std::round(large.total().count())).epsilon(1e-9));
  CHECK((large.total() - large.waiting_for_host).count() ==
        Approx(device.total().count()).epsilon(1e-6));
  double layers = 0;
  for (const LayerTime& t : large.layers) layers += (t.forward + t.backward).count();
  CHECK(layers == Approx(large.total().count()).epsilon(1e-9));
  // A host that keeps up costs nothing.
  slow.efficiency.host = Fact<Seconds>{Seconds{1e-12}};
  CHECK(compute_times(plan.jobs[0], slow, 4096).total() == device.total());
  plan.pools[0].efficiency.host = Fact<Seconds>{Seconds{1.0}};
  CHECK(estimate(plan).bottleneck == Bottleneck::host);
}

TEST_CASE("recomputation costs one more forward pass of all but the head") {
  Plan plan = resnet(StrategyKind::single);
  const auto none = estimate(plan);
  plan.jobs[0].strategy.layout.recompute = Recompute::full;
  const auto full = estimate(plan);
  const auto layers = plan.jobs[0].model.layers();
  double forward = 0, head = 0;
  for (const auto& l : none.layers)
    (layers[index(l.layer)].group == layers.back().group ? head : forward) += l.forward.count();
  CHECK(head > 0);
  CHECK(full.compute.count() == Approx(none.compute.count() + forward).epsilon(1e-9));
}

TEST_CASE("one accelerator communicates nothing under any strategy that only reduces") {
  for (const auto kind :
       {StrategyKind::single, StrategyKind::mirrored, StrategyKind::multi_worker_mirrored}) {
    const auto e = estimate(resnet(kind));
    CHECK(e.communication.count() == 0);
    CHECK(e.exposed_communication.count() == 0);
    CHECK(e.sent_per_worker.v == 0);
    CHECK(e.all_reduce.empty());
    CHECK(e.step.count() == Approx((e.compute + e.update + e.exposed_input).count()));
  }
}

TEST_CASE(
    "what is hidden slows arithmetic, no more than the same bytes at the device's own speed") {
  const auto slower = [](double hidden, double by_processors, double slowdown) {
    return contention({Seconds{hidden}, 300.0_GB, 100.0_GBps}, by_processors, slowdown).count();
  };
  CHECK(slower(2, 1, 0.5) == Approx(1));    // 2 s of 3 are hidden
  CHECK(slower(9, 1, 0.5) == Approx(1.5));  // on a slow network
  CHECK(slower(2, 0.25, 0.5) == Approx(0.25));
  CHECK(slower(2, 0, 0.5) == 0);  // all waits for memory
  CHECK(slower(0, 1, 0.5) == 0);
  CHECK(slower(2, 1, 0) == 0);
}

TEST_CASE("exposed communication lies between none of it and all of it") {
  for (const int nodes : {2, 8, 64}) {
    const auto e = estimate(resnet(StrategyKind::multi_worker_mirrored, nodes, 4));
    const double alone = (e.compute + e.update).count();
    CHECK(e.exposed_communication.count() >= 0);
    CHECK(e.step.count() >= std::max(alone, e.communication.count()));
    // 3 % jitter among at most 64 workers: the slowest is within 10 % of the mean.
    CHECK(e.step.count() <= 1.1 * alone + e.communication.count());
  }
}

TEST_CASE("more parameter servers: the step gets no slower, each carries less") {
  double step = 1e300, load = 1e300;
  for (const int servers : {1, 2, 4, 8, 16}) {
    const auto e = estimate(resnet(StrategyKind::parameter_server, 16, 1, servers));
    CHECK(e.step.count() <= step * (1 + 1e-9));
    CHECK(e.server_utilization <= load * (1 + 1e-9));
    CHECK(e.server_utilization <= 1 + 1e-9);
    step = e.step.count();
    load = e.server_utilization;
  }
  CHECK(estimate(resnet(StrategyKind::parameter_server, 16, 1, 1)).bottleneck ==
        Bottleneck::parameter_server);
}

TEST_CASE("asynchronous training goes on with fewer workers, at their rate") {
  Plan plan = resnet(StrategyKind::parameter_server, 8, 1, 8);
  plan.jobs[0].strategy.servers->synchronous = false;
  const double all = estimate(plan).samples_per_second.v;
  const double half = estimate(plan, 4).samples_per_second.v;
  CHECK(half == Approx(all / 2).epsilon(0.1));
  const double synchronous =
      estimate(resnet(StrategyKind::parameter_server, 8, 1, 8)).samples_per_second.v;
  CHECK(all > synchronous);
}

TEST_CASE("the parts of a step of parameter servers add up to it") {
  CHECK(rc::check([] {
    Plan plan = make_round_plan(*rc::gen::element(small_mlp(), zoo_model("resnet50").value()),
                                StrategyKind::parameter_server, *rc::gen::inRange(1, 9),
                                *rc::gen::inRange(1, 3), *rc::gen::inRange(1, 6), Precision::fp32);
    ParameterServers& servers = *plan.jobs[0].strategy.servers;
    servers.synchronous = *rc::gen::arbitrary<bool>();
    servers.staleness = servers.synchronous ? 0 : *rc::gen::inRange(0, 3);
    const double faster = std::pow(10, *rc::gen::inRange(-2, 4));
    for (PlannedPool& pool : plan.pools) {
      pool.host_step = Fact<Seconds>{Seconds{0.001}};
      pool.machine.network.value = pool.machine.network.value * faster;
    }
    const StepEstimate e = estimate(plan);
    RC_ASSERT(e.exposed_communication == e.exposed.total());
    const StepParts parts = parts_of(e);
    for (const StepPart& part : kStepParts) RC_ASSERT((parts.*part.time).count() >= 0);
    // What is left is the framework's.
    RC_ASSERT(std::abs((parts.other - e.host).count()) <= 1e-9 * e.step.count());
  }));
}

TEST_CASE("variables on a worker's own host do not cross the network") {
  const auto e = estimate(resnet(StrategyKind::parameter_server, 1, 4, 0));
  CHECK(e.server_utilization == 0);
  CHECK(e.communication.count() > 0);  // over the bus
}

TEST_CASE("the step is no faster than its input pipeline") {
  Plan plan = resnet(StrategyKind::mirrored, 1, 4);
  auto& data = plan.jobs[0].dataset;
  // 4 x 32 samples x 10 vCPU milliseconds / 16 vCPUs = 80 ms; read 128 x 110 kB / 100 MB/s = 140.8
  // ms.
  data.decode_cpu_seconds = Fact<double>{0.010};
  data.bytes_per_sample = Fact<Bytes>{110.0_kB};
  const auto input = input_times(plan.pools[0], plan.jobs[0], 32);
  CHECK(input.decode.count() == Approx(0.08));
  CHECK(input.read.count() == Approx(0.1408));
  data.bytes_per_sample = Fact<Bytes>{1.0_MB};
  const auto e = estimate(plan);
  CHECK(e.step.count() == Approx(1.28));  // 128 MB at 100 MB/s
  CHECK(e.bottleneck == Bottleneck::input);
  CHECK(e.samples_per_second.v == Approx(100));
}

TEST_CASE("samples are decoded by as many threads as the data says, and by no more than vCPUs") {
  Plan plan = resnet(StrategyKind::mirrored, 1, 4);
  PlannedWorkload& job = plan.jobs[0];
  job.dataset.decode_cpu_seconds = Fact<double>{0.010};
  const auto decode = [&] { return input_times(plan.pools[0], job, 32).decode.count(); };
  job.data.threads = 2;  // of each of 4 ranks
  CHECK(decode() == Approx(4 * 32 * 0.010 / 8));
  job.data.threads = 8;  // 32 on 16 vCPUs
  CHECK(decode() == Approx(4 * 32 * 0.010 / 16));
}

TEST_CASE("samples that are asked of a store one by one take its latency, divided by threads") {
  Plan plan = resnet(StrategyKind::mirrored, 1, 4);
  PlannedWorkload& job = plan.jobs[0];
  job.dataset.bytes_per_sample = Fact<Bytes>{110.0_kB};
  job.dataset.decode_cpu_seconds = Fact<double>{0.0};
  job.checkpoint.storage.latency = Fact<Seconds>{Seconds{0.050}};
  const auto read = [&] { return input_times(plan.pools[0], job, 32).read.count(); };
  const double all_bytes = 128 * 110e3 / 100e6;
  CHECK(read() == Approx(all_bytes));  // of shards that are read through
  job.data.path = "s3://photos/train-";
  job.data.threads = 1;
  CHECK(read() == Approx((all_bytes + 128 * 0.050) / 4));
  job.dataset.decode_cpu_seconds = Fact<double>{0.010};  // by the thread that asked
  CHECK(read() == Approx((all_bytes + 128 * 0.060) / 4));
  job.data.threads = 100;
  CHECK(read() == Approx(all_bytes));
}

TEST_CASE("processors that compute decode as well, and have no time for both at once") {
  Plan plan = resnet(StrategyKind::single, 1, 1);
  for (PlannedPool& pool : plan.pools) {
    pool.accelerator.reset();
    pool.accelerators_per_node = 0;
  }
  plan.jobs[0].dataset.decode_cpu_seconds = Fact<double>{0.0};
  const StepEstimate without = estimate(plan);
  plan.jobs[0].dataset.decode_cpu_seconds = Fact<double>{0.010};
  const auto input = input_times(plan.pools[0], plan.jobs[0], 32);
  REQUIRE(input.processors.count() == Approx(32 * 0.010 / 16));
  REQUIRE(input.processors < without.step);  // beside an accelerator nobody would wait for it
  CHECK(estimate(plan).step.count() ==
        Approx((without.compute + without.update).count() + input.processors.count()));
}

TEST_CASE("MFU is model FLOP/s over peak") {
  const Plan plan = resnet(StrategyKind::mirrored, 1, 2);
  const auto e = estimate(plan);
  const double flops = plan.jobs[0].model.model_flops().v * e.samples_per_second.v;
  CHECK(e.mfu == Approx(flops / 2e13));
  CHECK(e.mfu < 0.5);  // the round accelerator's efficiency
}

TEST_CASE("workers without accelerators have no MFU, whatever their vCPUs are fitted to") {
  Plan plan = resnet(StrategyKind::single, 1, 1);
  for (PlannedPool& pool : plan.pools) {
    pool.accelerator.reset();
    pool.accelerators_per_node = 0;
  }
  const auto e = estimate(plan);
  CHECK(e.samples_per_second.v > 0);
  CHECK(e.mfu == 0);
}

TEST_CASE("a faster link, NIC or accelerator never makes a step slower") {
  CHECK(rc::check([] {
    const auto kind = *rc::gen::element(StrategyKind::mirrored, StrategyKind::multi_worker_mirrored,
                                        StrategyKind::parameter_server);
    const int nodes = kind == StrategyKind::mirrored ? 1 : *rc::gen::inRange(1, 9);
    const int servers = kind == StrategyKind::parameter_server ? *rc::gen::inRange(1, 5) : 0;
    Plan plan = make_round_plan(small_mlp(), kind, nodes, *rc::gen::inRange(1, 5), servers);
    const double slow = estimate(plan).step.count();
    const double factor = 1 + *rc::gen::inRange(0, 50) / 10.0;
    for (auto& pool : plan.pools) {
      pool.machine.network.value = pool.machine.network.value * factor;
      if (!pool.accelerator) continue;
      pool.accelerator->peer_bandwidth->value = pool.accelerator->peer_bandwidth->value * factor;
      pool.accelerator->peak[0]->value = pool.accelerator->peak[0]->value * factor;
    }
    RC_ASSERT(estimate(plan).step.count() <= slow * (1 + 1e-9));
  }));
}

TEST_CASE("evaluation runs forward over the validation set on all accelerators") {
  const Plan plan = resnet(StrategyKind::mirrored, 1, 4);
  const auto e = estimate(plan);
  double forward = 0;
  for (const auto& l : e.layers) forward += l.forward.count();
  // 10,000 samples in batches of 4 x 32: 79 of them.
  CHECK(evaluation_time(plan, plan.jobs[0], e).count() == Approx(79 * forward));
}

TEST_CASE("a checkpoint holds fp32 weights and optimizer state") {
  Plan plan = make_round_plan(small_mlp(), StrategyKind::single);
  CHECK(checkpoint_bytes(plan.jobs[0]).v == 8.0 * 669706);
  plan.jobs[0].optimizer = Optimizer::adamw;
  CHECK(checkpoint_bytes(plan.jobs[0]).v == 12.0 * 669706);
  plan.jobs[0].checkpoint.save_overhead = Fact<Seconds>{Seconds{2}};
  CHECK(checkpoint_save_time(plan, plan.jobs[0]).count() == Approx(2 + 12.0 * 669706 / 1e8));
  CHECK(checkpoint_restore_time(plan, plan.jobs[0]).count() == Approx(12.0 * 669706 / 1e8));
}

TEST_CASE("workers on CPUs that go in step exchange their loss, too, and nothing hides that") {
  Plan plan = make_round_plan(small_mlp(), StrategyKind::multi_worker_mirrored, 2);
  plan.pools[0].accelerator.reset();
  plan.framework.step_jitter = Fact<double>{0};
  plan.pools[0].host_step = Fact<Seconds>{Seconds{0.001}};
  const StepEstimate e = estimate(plan);
  CHECK(e.host.count() == Approx(0.001));  // the worker's own, and nothing else
  CHECK(e.exposed_communication == e.exposed.total());
  CHECK((e.compute + e.update + e.exposed_communication + e.host + e.exposed_input).count() ==
        Approx(e.step.count()));
  CHECK(e.exposed.gradients > Seconds{0});
  CHECK(estimate(plan, 1).exposed_communication == Seconds{0});
}

TEST_CASE("the step cache answers what estimate_step answers, for every number of workers") {
  const Plan plan = resnet(StrategyKind::multi_worker_mirrored, 8, 2);
  const auto network = make_fluid_network();
  StepCache cache(plan, plan.jobs[0], *network);
  for (const int live : {8, 3, 1, 8, 3})
    CHECK(cache.at(live).step == estimate_step(plan, plan.jobs[0], *network, live).step);
  CHECK(&cache.at(8) == &cache.at(8));
}
