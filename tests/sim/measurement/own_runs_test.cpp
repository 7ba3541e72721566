#include "sim/measurement/own_runs.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "sim/measurement/history.h"
#include "support/plans.h"

using namespace reckon;

namespace {

OwnRun job(std::int64_t batch = 64) {
  return {.machine = "epyc, 2 cores",
          .network = "mlp_mnist",
          .unit = "image",
          .strategy = "single",
          .batch = batch};
}
OwnRun own_run(double measured_over_modelled, std::int64_t batch = 64) {
  OwnRun r = job(batch);
  r.modelled = Seconds{0.01};
  r.step = measured_over_modelled * r.modelled;
  r.start = Seconds{0.2};
  r.save = Seconds{0.003};
  r.steps = 100;
  return r;
}

}  // namespace

TEST_CASE("without runs of one's own the forecast is the model's") {
  const OwnEvidence e = own_evidence({}, job());
  CHECK(e.median == 1);
  CHECK(e.runs == 0);
  CHECK_FALSE(e.start);
  CHECK(e.half_width > 0.4);
}

TEST_CASE("one run of a job is what the next is forecast by, within a fifth") {
  const std::vector<OwnRun> runs{own_run(1.6)};
  const OwnEvidence e = own_evidence(runs, job());
  CHECK(e.median == Approx(1.6).epsilon(0.03));
  CHECK(e.half_width < std::log(1.2));
  CHECK(e.start->count() == 0.2);
  CHECK(e.save->count() == 0.003);
}

TEST_CASE("what is less alike says less, and another machine nothing") {
  const std::vector<OwnRun> runs{own_run(1.6)};
  OwnRun other = job(256);
  const OwnEvidence size = own_evidence(runs, other);
  other.network = "gpt2_small";
  other.unit = "sequence";
  const OwnEvidence network = own_evidence(runs, other);
  other.machine = "xeon, 96 cores";
  const OwnEvidence machine = own_evidence(runs, other);
  const OwnEvidence same = own_evidence(runs, job());
  CHECK(same.median > size.median);
  CHECK(size.median > network.median);
  CHECK(network.median > 1);
  CHECK(machine.median == 1);
  CHECK(same.half_width < size.half_width);
  CHECK(size.half_width < network.half_width);
  CHECK(network.half_width < machine.half_width);
}

TEST_CASE("one more run never widens the range") {
  std::vector<OwnRun> runs;
  double before = own_evidence(runs, job()).half_width;
  for (const double factor : {1.2, 0.7, 3.0, 1.1}) {
    runs.push_back(own_run(factor, 16));
    const double after = own_evidence(runs, job()).half_width;
    CHECK(after <= before);
    before = after;
  }
}

TEST_CASE("a run of one's own survives the history's file") {
  HistoryRecord record;
  record.kind = HistoryRecord::Kind::run;
  record.own = own_run(1.5);
  record.own->workers = 3;
  const History read = parse_history(to_line(record));
  REQUIRE(read.records.size() == 1);
  REQUIRE(read.records.front().own);
  const OwnRun& own = *read.records.front().own;
  CHECK(own.machine == "epyc, 2 cores");
  CHECK(own.step.count() == record.own->step.count());
  CHECK(own.workers == 3);
  CHECK(own.synchronous);
  CHECK_FALSE(parse_history(to_line(HistoryRecord{})).records.front().own);
}

TEST_CASE("own evidence sets the factor of what was probed, the start and the save") {
  Plan plan = test::make_round_plan(test::small_mlp(), StrategyKind::single, 1);
  PlannedPool& pool = plan.pools.front();
  pool.accelerator.reset();
  pool.measured_rates = std::make_shared<const WorkerRates>();
  const OwnRun question = own_question(plan, "epyc, 2 cores");
  OwnRun earlier = own_run(2);
  earlier.network = question.network;
  earlier.unit = question.unit;
  earlier.batch = question.batch;
  set_own_evidence(plan, std::vector<OwnRun>{earlier}, question);
  CHECK(plan.pools.front().efficiency.step_spread.value == Approx(2).epsilon(0.05));
  CHECK(plan.job_start.framework_start.value.count() == 0.2);
  CHECK(plan.jobs.front().checkpoint.save_overhead.value.count() == 0.003);
}

TEST_CASE("two layouts of one job are two jobs, to evidence and to the history") {
  const auto plan = [](int zero_stage) {
    Plan p = test::make_round_plan(test::small_mlp(), StrategyKind::sharded, 2);
    p.only_job().strategy.layout.zero_stage = zero_stage;
    return p;
  };
  const auto question = [&](int stage) { return own_question(plan(stage), "here"); };
  CHECK(question(1).strategy != question(3).strategy);
  CHECK(plan_identity(plan(1)) != plan_identity(plan(3)));
  CHECK(plan_identity(plan(3)) == plan_identity(plan(3)));
  OwnRun seen = question(1);
  seen.modelled = Seconds{0.01};
  seen.step = Seconds{0.02};
  const std::vector<OwnRun> runs{seen};
  CHECK(own_evidence(runs, question(3)).half_width >
        1.5 * own_evidence(runs, question(1)).half_width);
}
