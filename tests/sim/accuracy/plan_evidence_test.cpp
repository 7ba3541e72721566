#include "sim/accuracy/plan_evidence.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/accuracy/run/plan.h"
#include "sim/step/network/network.h"
#include "support/shipped_catalog.h"

using namespace reckon;

namespace {

/// BERT-large on 16 A100 in two nodes, whose step has links.
PublishedRun plan_evidence_bert(double rate, std::string_view source) {
  PublishedRun r;
  r.id = r.source = source;
  r.trust = 'A';
  r.run.accelerator = "A100-SXM4-80";
  r.run.accelerators = 16;
  r.run.accelerators_per_node = 8;
  r.run.nodes = 2;
  r.run.intra_node_link = "nvlink3";
  r.run.inter_node = BytesPerSecond{200e9};
  r.run.model = "bert_large";
  r.run.precision = "fp16";
  r.run.strategy = "all_reduce";
  r.run.batch_per_accelerator = 32;
  r.run.global_batch = 512;
  r.run.sequence_length = 512;
  r.run.stack = "pytorch-ngc";
  r.measured = SamplesPerSecond{rate};
  return r;
}

Plan plan() { return plan_of_run(plan_evidence_bert(1, "a").run, test::shipped_catalog()).value(); }
StepEstimate step_of(const Plan& plan) {
  return estimate_step(plan, plan.jobs.front(), *make_fluid_network());
}

}  // namespace

TEST_CASE("a run's own columns and its plan's are the same question") {
  const PublishedRun run = plan_evidence_bert(1, "a");
  const Plan p = plan();
  const EvidenceFeatures of_run = FeatureReader(test::shipped_catalog())(run).value();
  const EvidenceFeatures of_plan = features_of(p, p.jobs.front());
  CHECK(of_plan.accelerator == of_run.accelerator);
  CHECK(of_plan.architecture == of_run.architecture);
  CHECK(of_plan.precision == of_run.precision);
  CHECK(of_plan.domain == of_run.domain);
  CHECK(of_plan.network == of_run.network);
  CHECK(of_plan.stack == of_run.stack);
  CHECK(of_plan.link == of_run.link);
  CHECK(of_plan.many_nodes == of_run.many_nodes);
  CHECK(of_plan.log_count == Approx(of_run.log_count));
  CHECK(of_plan.log_batch == Approx(of_run.log_batch));
}

TEST_CASE("evidence moves the whole step and its parts by one factor") {
  Plan moved = plan();
  const StepEstimate before = step_of(moved);
  const std::vector<PublishedRun> runs{plan_evidence_bert(before.samples_per_second.v / 1.5, "a")};
  const Evidence evidence(runs, test::shipped_catalog(), EvidenceKernel{});
  const auto residual = set_residual(moved, evidence);
  REQUIRE(residual);
  CHECK(residual->mean < -0.1);  // part of the way to ln(1 / 1.5) = -0.41
  CHECK(residual->mean > -0.41);
  const StepEstimate after = step_of(moved);
  const double factor = std::exp(-residual->mean);
  CHECK(after.step.count() == Approx(before.step.count() * factor));
  CHECK(after.compute.count() == Approx(before.compute.count() * factor));
  CHECK(after.exposed.total().count() == Approx(before.exposed.total().count() * factor));
  CHECK(after.samples_per_second.v == Approx(before.samples_per_second.v / factor));
  CHECK(after.mfu == Approx(before.mfu / factor));
}

TEST_CASE("the range around the moved step is the posterior's 90 %") {
  Plan moved = plan();
  const Evidence evidence({}, test::shipped_catalog(), EvidenceKernel{});
  const auto residual = set_residual(moved, evidence);
  REQUIRE(residual);
  const Fact<double>& factor = moved.pool_with(Role::worker)->efficiency.step_spread;
  CHECK(factor.value == 1);
  CHECK(factor.low == Approx(std::exp(-residual->half_width)));
  CHECK(factor.high == Approx(std::exp(residual->half_width)));
  CHECK(factor.assumed);
}

TEST_CASE("the plan says which runs its step rests on, the most alike first") {
  Plan moved = plan();
  PublishedRun other = plan_evidence_bert(100, "b");
  other.run.model = "resnet50_v1_5";
  other.run.accelerator = "V100-SXM2-16";
  other.run.intra_node_link = "nvlink2";
  const std::vector<PublishedRun> runs{other, plan_evidence_bert(300, "a"),
                                       plan_evidence_bert(310, "a")};
  const Evidence evidence(runs, test::shipped_catalog(), EvidenceKernel{});
  const auto residual = set_residual(moved, evidence);
  REQUIRE(moved.evidence);
  const StepEvidence& said = *moved.evidence;
  REQUIRE(said.runs.size() == 2);  // equal configurations are one
  CHECK(said.runs.front().id == "a");
  CHECK(said.runs.front().same_job);
  CHECK(said.runs.front().accelerators == 16);
  CHECK(said.runs.front().each.v == Approx(310.0 / 16));  // the upper of two is their median
  CHECK_FALSE(said.runs.back().same_job);
  CHECK(said.runs.front().correlation > said.runs.back().correlation);
  CHECK(said.of_this_job == 1);
  CHECK(said.median == Approx(std::exp(-residual->mean)));
  CHECK(said.low == Approx(said.median * std::exp(-residual->half_width)));
  CHECK_FALSE(said.trial);
}

TEST_CASE("a trial's offer narrows the range and is priced with the node's start") {
  Plan moved = plan();
  for (PlannedPool& pool : moved.pools) {
    pool.price = {true, HourlyRate{2'000'000'000}, HourlyRate{30'000'000'000}, "", "test"};
    pool.provisioning = Fact<Seconds>{Seconds{300}};
  }
  moved.job_start.image_pull = moved.job_start.framework_start = Fact<Seconds>{Seconds{30}};
  moved.job_start.compile = Fact<Seconds>{Seconds{0}};
  const Evidence evidence({}, test::shipped_catalog(), EvidenceKernel{});
  REQUIRE(set_residual(moved, evidence));
  add_trial(moved, evidence);
  REQUIRE(moved.evidence->trial);
  const TrialOffer& trial = *moved.evidence->trial;
  CHECK(trial.accelerators == 8);  // one of two nodes
  CHECK(trial.half_width < moved.evidence->half_width);
  CHECK(trial.time.count() == Approx(360 + 50 * step_of(moved).step.count()));
  REQUIRE(trial.cost);
  CHECK(trial.cost->v == Approx(32.0 * trial.time.count() / 3600));
  moved.pools.front().price.known = false;
  add_trial(moved, evidence);
  CHECK_FALSE(moved.evidence->trial->cost);
}

TEST_CASE(
    "the stack of a question is the one that the scenario names, though its row is a class's") {
  PublishedRun run = plan_evidence_bert(1, "a");
  run.run.model = "gpt";
  run.run.layers = 24;
  run.run.hidden = 2048;
  run.run.heads = 16;
  run.run.vocabulary = 51200;
  run.run.precision = "bf16";
  run.run.stack = "torchtitan";
  const Plan p = plan_of_run(run.run, test::shipped_catalog()).value();
  CHECK(p.pool_with(Role::worker)->efficiency.stack == "fused-lm");
  CHECK(features_of(p, p.jobs.front()).stack == word_id("torchtitan"));
  CHECK(features_of(p, p.jobs.front()).stack_family == word_id("pytorch"));
}

TEST_CASE("asking twice is asking once") {
  Plan moved = plan();
  const std::vector<PublishedRun> runs{plan_evidence_bert(300, "a")};
  const Evidence evidence(runs, test::shipped_catalog(), EvidenceKernel{});
  const double once = set_residual(moved, evidence)->mean;
  CHECK(set_residual(moved, evidence)->mean == once);
}

TEST_CASE("what a calibration has measured is not moved by what others measured") {
  Plan calibrated = plan();
  for (PlannedPool& pool : calibrated.pools)
    pool.efficiency.matmul.source = static_cast<SourceId>(calibrated.sources.size());
  calibrated.sources.push_back({.id = "mine", .reference = "calibration mine"});
  const std::vector<PublishedRun> runs{plan_evidence_bert(300, "a")};
  const Evidence evidence(runs, test::shipped_catalog(), EvidenceKernel{});
  CHECK_FALSE(set_residual(calibrated, evidence));
  CHECK(takes_evidence(plan()));
}

namespace {

/// BERT-large and, in the same pools, ResNet-50.
Plan plan_of_two() {
  Plan two = plan();
  RunConfiguration other = plan_evidence_bert(1, "a").run;
  other.model = "resnet50_v1_5";
  other.sequence_length = 0;
  two.jobs.push_back(plan_of_run(other, test::shipped_catalog()).value().only_job());
  two.jobs.push_back(two.jobs.back());
  two.jobs.back().same_as = 1;
  return two;
}

}  // namespace

TEST_CASE("each of several jobs is moved by what was measured of its own network") {
  Plan two = plan_of_two();
  const double bert = step_of(two).samples_per_second.v;
  // As fast as the step model says: what was measured of BERT alone is 1.5 times slower.
  const std::vector<PublishedRun> runs{plan_evidence_bert(bert / 1.5, "a")};
  const Evidence evidence(runs, test::shipped_catalog(), EvidenceKernel{});
  Plan first = plan_of_job(two, 0), second = plan_of_job(two, 1);
  const auto of_first = set_residual(first, evidence);
  const auto of_second = set_residual(second, evidence);
  REQUIRE(of_first);
  REQUIRE(of_second);
  REQUIRE(of_first->mean < of_second->mean - 0.01);

  const auto returned = set_residual(two, evidence);
  REQUIRE(returned);
  CHECK(returned->mean == of_first->mean);
  for (const std::size_t k : {0u, 1u, 2u}) {
    INFO("job " << k);
    const Plan alone = plan_of_job(two, k);
    const Plan& expected = k == 0 ? first : second;
    const Fact<double>& is = alone.pool_with(Role::worker)->efficiency.step_spread;
    const Fact<double>& own = expected.pool_with(Role::worker)->efficiency.step_spread;
    CHECK(is.value == own.value);
    CHECK(is.low == own.low);
    CHECK(is.high == own.high);
    CHECK(alone.sources[std::size_t(is.source)].reference ==
          expected.sources[std::size_t(own.source)].reference);
    CHECK(step_of(alone).step == step_of(expected).step);
    CHECK(alone.framework.memory_mean == expected.framework.memory_mean);
    CHECK(alone.framework.memory_deviation == expected.framework.memory_deviation);
  }
  CHECK(two.evidence->median == first.evidence->median);
  const Plan once = two;
  set_residual(two, evidence);
  CHECK(two.jobs[1].residual->step_spread->value == once.jobs[1].residual->step_spread->value);
}
