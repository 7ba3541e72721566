#include <catch2/catch.hpp>
#include <cmath>

#include "sim/forecast/explain/restarts.h"
#include "sim/forecast/forecast.h"
#include "sim/forecast/pace.h"
#include "sim/step/step.h"
#include "support/plans.h"

// Restarts, tiers of checkpoints and stragglers from a plan to its forecast.
using namespace reckon;
using namespace std::chrono_literals;

namespace {

const NetworkModel& by_formula() {
  static const auto network = make_closed_form_network();
  return *network;
}

/// Passes large enough that arithmetic is most of a step.
Plan data_parallel(int nodes) {
  constexpr int kLarger = 256;
  Plan plan = test::make_round_plan(test::small_mlp(), StrategyKind::multi_worker_mirrored, nodes);
  plan.jobs[0].strategy.layout.micro_batch *= kLarger;
  plan.jobs[0].global_batch *= kLarger;
  return plan;
}
Plan elastic(int nodes, int least) {
  Plan plan = data_parallel(nodes);
  plan.jobs[0].restart = PlannedRestart{
      .kind = RestartKind::elastic, .min_workers = least, .regroup = Fact<Seconds>{5s}};
  return plan;
}

Forecast short_forecast(const Plan& plan) {
  ForecastOptions options;
  options.replications = 40;
  options.assumption_effects = false;
  options.threads = 2;
  return make_forecast(plan, by_formula(), options);
}

/// The job is a day long on spot nodes that live for six hours and take twenty minutes to replace.
Plan on_spot(Plan plan) {
  PlannedPool& pool = plan.pools.front();
  pool.pricing = CapacityType::spot;
  pool.provisioning = Fact<Seconds>{20min};
  plan.reclaim.law = ExponentialReclaim{6h};
  plan.job_start.framework_start = Fact<Seconds>{40s};
  plan.jobs[0].checkpoint.mode = CheckpointSpec::Mode::interval;
  plan.jobs[0].checkpoint.interval = 10min;
  plan.jobs[0].checkpoint.notice.policy = OnNotice::none;
  PlannedWorkload& job = plan.jobs[0];
  const Seconds step = estimate_step(plan, job, by_formula()).step;
  job.steps = std::int64_t(Seconds{24h} / step);
  job.total_samples = double(job.steps) * double(job.global_batch);
  return plan;
}

}  // namespace

TEST_CASE("a smaller elastic job accumulates what the others had: its step is the step model's") {
  const Plan plan = elastic(4, 2);
  const JobPace pace = make_pace(plan, by_formula()).pace;
  CHECK(pace.step_by_workers[1].count() == 0);  // fewer than its least
  // Two of four workers make two passes each for the same batch.
  Plan two = data_parallel(2);
  two.jobs[0].global_batch = plan.jobs[0].global_batch;
  CHECK(pace.step_by_workers[2].count() ==
        Approx(estimate_step(two, two.jobs[0], by_formula()).step.count()));
  // Three make two passes as well, the last of which is not full on all.
  Plan three = data_parallel(3);
  three.jobs[0].global_batch = 2 * three.jobs[0].global_batch;
  CHECK(pace.step_by_workers[3].count() ==
        Approx(estimate_step(three, three.jobs[0], by_formula()).step.count()));
}

TEST_CASE("a scaled batch takes each worker's own pass, and more steps for the same samples") {
  Plan plan = elastic(4, 1);
  plan.jobs[0].restart->batch = ElasticBatch::scaled;
  const JobPace pace = make_pace(plan, by_formula()).pace;
  Plan two = data_parallel(2);
  const Seconds step = estimate_step(two, two.jobs[0], by_formula()).step;
  CHECK(pace.step_by_workers[2].count() == Approx(2 * step.count()));
}

TEST_CASE("on spot nodes that take long to replace an elastic job is done sooner") {
  const Forecast full = short_forecast(on_spot(data_parallel(8)));
  const Plan plan = on_spot(elastic(8, 4));
  const Forecast f = short_forecast(plan);
  REQUIRE(f.jobs.size() == 1);
  const auto& restart = f.jobs.front().restart;
  REQUIRE(restart);
  CHECK(restart->keeps_state);
  CHECK(restart->smaller > 0.1);
  CHECK(restart->growths > 5);
  CHECK(f.time_seconds.mean < 0.9 * full.time_seconds.mean);
  CHECK(f.badput[std::size_t(Badput::lost_work)] <
        0.1 * full.badput[std::size_t(Badput::lost_work)]);
  CHECK_FALSE(full.jobs.front().restart);
}

TEST_CASE("each of several jobs has its own interval, notices and restarts") {
  Plan plan = on_spot(data_parallel(2));  // saves every 10 min, nothing on a notice
  plan.reclaim.notice = 2min;
  plan.jobs[0].name = "loses";
  PlannedWorkload saves = plan.jobs[0];
  saves.name = "saves";
  saves.checkpoint.interval = 20min;
  saves.checkpoint.notice.policy = OnNotice::save;
  PlannedWorkload shrinks = on_spot(elastic(2, 1)).jobs[0];
  shrinks.name = "shrinks";
  plan.jobs.push_back(saves);
  plan.jobs.push_back(shrinks);
  const Forecast f = short_forecast(plan);
  REQUIRE(f.jobs.size() == 3);
  CHECK(f.jobs[0].checkpoint_interval == Seconds{10min});
  CHECK(f.jobs[1].checkpoint_interval == Seconds{20min});
  REQUIRE((f.jobs[0].on_notice && f.jobs[1].on_notice));
  CHECK(f.jobs[0].on_notice->policy == OnNotice::none);
  CHECK(f.jobs[0].on_notice->notices > 1);
  CHECK(f.jobs[0].on_notice->in_time == 0);
  CHECK(f.jobs[1].on_notice->policy == OnNotice::save);
  CHECK(f.jobs[1].on_notice->notices > 1);
  // 8 MB are written in far less than the notice.
  CHECK(f.jobs[1].on_notice->in_time == f.jobs[1].on_notice->notices);
  CHECK_FALSE((f.jobs[0].restart || f.jobs[1].restart));
  REQUIRE(f.jobs[2].restart);
  CHECK_FALSE(f.jobs[2].on_notice);  // who is left holds all of the state
  CHECK(f.jobs[2].restart->growths > 1);
  CHECK(f.jobs[2].restart->smaller > 0.01);
  // As if it were alone, but for the luck of other draws. Its share is smaller here: its time has
  // begun while it still waits for the nodes of the other two.
  Plan alone = plan;
  alone.jobs = {shrinks};
  const Forecast one = short_forecast(alone);
  CHECK(f.jobs[2].restart->growths == Approx(one.jobs[0].restart->growths).epsilon(0.3));
  CHECK(f.jobs[2].restart->smaller < one.jobs[0].restart->smaller);
}

TEST_CASE("peers' memory takes the host's, and is refused where there is too little") {
  Plan plan = data_parallel(4);
  plan.jobs[0].checkpoint.mode = CheckpointSpec::Mode::interval;
  plan.jobs[0].checkpoint.interval = 1h;
  plan.jobs[0].checkpoint.local =
      PlannedLocalCheckpoint{.to = LocalTier::peer_memory, .every = 1min, .replicas = 2};
  const Bytes state = checkpoint_bytes(plan.jobs[0]);
  // Twice, of each of two parts; the first worker alone holds all of the state.
  CHECK(local_tier_memory(plan, plan.jobs[0]).v == Approx(4 * state.v));
  CHECK_FALSE(check_memory(plan, plan.jobs[0], Catalog{}, Places{}));
  plan.pools[0].machine.memory = Fact<Bytes>{4 * state};
  const auto problem = check_memory(plan, plan.jobs[0], Catalog{}, Places{});
  REQUIRE(problem);
  CHECK(problem->what.find("checkpoints in the nodes' memory") != std::string::npos);
  plan.jobs[0].checkpoint.local->to = LocalTier::local_disk;
  CHECK_FALSE(check_memory(plan, plan.jobs[0], Catalog{}, Places{}));
}

TEST_CASE("a save to a peer goes through the NIC, a save to the own disk does not") {
  Plan plan = data_parallel(4);
  plan.jobs[0].checkpoint.local =
      PlannedLocalCheckpoint{.to = LocalTier::local_disk,
                             .every = 1min,
                             .replicas = 1,
                             .disk = Fact<BytesPerSecond>{BytesPerSecond{1e8}}};
  StepEstimate step;
  step.step = 1s;
  const double state = checkpoint_bytes(plan.jobs[0]).v;
  const LocalSaveTimes disk = local_save_times(plan, plan.jobs[0], step);
  CHECK(disk.write.count() == Approx(state / 1e8));
  CHECK(disk.stall.count() == Approx(state / 10e9));  // over the accelerator's 10 GB/s to the host
  plan.jobs[0].checkpoint.local->to = LocalTier::peer_memory;
  plan.jobs[0].checkpoint.local->disk = {};
  plan.jobs[0].checkpoint.local->replicas = 3;
  // Two peers, over 10 Gbit/s that no step uses.
  CHECK(local_save_times(plan, plan.jobs[0], step).write.count() == Approx(2 * state / 1.25e9));
}

TEST_CASE("explain proposes what the job allows, under the same draws") {
  const Plan plan = on_spot(data_parallel(8));
  const auto ways = restarts_that_apply(plan, by_formula(), Fact<Seconds>{20s});
  REQUIRE(ways.size() == 5);  // as it is; in place, a spare, elastic, peers' memory
  CHECK(ways.front().set.empty());
  for (const RestartChange& way : ways) CHECK(way.seconds <= ways.front().seconds * 1.001);
  for (std::size_t k = 2; k < ways.size(); ++k) CHECK(ways[k - 1].seconds <= ways[k].seconds);
  Plan calm = plan;
  calm.reclaim.law = NoReclaim{};
  CHECK(restarts_that_apply(calm, by_formula(), Fact<Seconds>{20s}).empty());
  Plan one = on_spot(test::make_round_plan(test::small_mlp(), StrategyKind::parameter_server, 2));
  CHECK(restarts_that_apply(one, by_formula(), Fact<Seconds>{20s}).empty());
}
