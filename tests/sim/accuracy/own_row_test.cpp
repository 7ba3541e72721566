#include "sim/accuracy/own_row.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/accuracy/plan_evidence.h"
#include "sim/accuracy/run/plan.h"
#include "support/shipped_catalog.h"
#include "support/shipped_evidence.h"

using namespace reckon;

namespace {

/// BERT-large on so many A100 of one node or two, whose stack nobody says.
Plan bert(int accelerators, int batch_each) {
  RunConfiguration r;
  r.accelerator = "A100-SXM4-80";
  r.accelerators = accelerators;
  r.accelerators_per_node = 8;
  r.nodes = (accelerators + 7) / 8;
  r.intra_node_link = "nvlink3";
  r.inter_node = BytesPerSecond{200e9};
  r.model = "bert_large";
  r.precision = "fp16";
  r.strategy = "all_reduce";
  r.batch_per_accelerator = batch_each;
  r.global_batch = std::int64_t{batch_each} * accelerators;
  r.sequence_length = 512;
  return plan_of_run(r, test::shipped_catalog()).value();
}

/// Half as slow again as the step model says.
OwnRow slower(const Plan& plan, double noise = 0.01) {
  OwnRow row = own_row(plan, *make_fluid_network());
  row.id = "mine";
  row.step_seconds = 1.5 * row.modelled_seconds;
  row.noise = noise;
  row.steps = 40;
  return row;
}

StepEvidence own_row_asked(Plan plan, std::vector<OwnRow> rows) {
  const Evidence evidence({}, test::shipped_catalog(), EvidenceKernel{}, std::move(rows));
  REQUIRE(set_residual(plan, evidence));
  return *plan.evidence;
}

}  // namespace

TEST_CASE("a row of one's own is the same question as its plan") {
  const Plan plan = bert(8, 32);
  EvidenceFeatures of_plan = as_own(features_of(plan, plan.jobs.front()));
  const EvidenceFeatures of_row = features_of(slower(plan), test::shipped_catalog()).value();
  CHECK(of_row.accelerator == of_plan.accelerator);
  CHECK(of_row.architecture == of_plan.architecture);
  CHECK(of_row.precision == of_plan.precision);
  CHECK(of_row.domain == of_plan.domain);
  CHECK(of_row.network == of_plan.network);
  CHECK(of_row.stack == of_plan.stack);
  CHECK(of_row.stack != 0);  // that of the user, who does not say it
  CHECK(of_row.source == of_plan.source);
  CHECK(of_row.link == of_plan.link);
  CHECK(of_row.many_nodes == of_plan.many_nodes);
  CHECK(of_row.log_count == Approx(of_plan.log_count));
  CHECK(of_row.log_batch == Approx(of_plan.log_batch));
  CHECK(of_row.log_parameters == Approx(of_plan.log_parameters));
  OwnRow unknown = slower(plan);
  unknown.accelerator = "abacus";
  CHECK_FALSE(features_of(unknown, test::shipped_catalog()));
}

TEST_CASE("one run of one's own moves the forecast of that job to it, within a fifth") {
  const StepEvidence before = own_row_asked(bert(8, 32), {});
  const StepEvidence after = own_row_asked(bert(8, 32), {slower(bert(8, 32))});
  CHECK(std::expm1(before.half_width) > 0.5);
  CHECK(std::expm1(after.half_width) < 0.2);
  CHECK(after.median == Approx(1.5).epsilon(0.03));
  REQUIRE(after.runs.size() == 1);
  CHECK(after.runs.front().source == kOwnSource);
  CHECK(after.runs.front().same_job);
}

TEST_CASE("a run of one's own counts in full where all published runs contradict it") {
  Plan plan = bert(8, 32);
  for (const double factor : {0.4, 2.5, 6.0}) {
    OwnRow mine = slower(plan);
    mine.step_seconds = factor * mine.modelled_seconds;
    const EvidenceFiles& files = test::shipped_evidence_files();
    const Evidence evidence(files.runs(), test::shipped_catalog(), files.kernel().value(), {mine});
    REQUIRE(set_residual(plan, evidence));
    CHECK(plan.evidence->runs.size() > 10);
    INFO(factor << " times: " << plan.evidence->median);
    CHECK(plan.evidence->median == Approx(factor).epsilon(0.03));
  }
}

TEST_CASE("what is less like a run of one's own is narrowed less") {
  const OwnRow mine = slower(bert(8, 32));
  const double same = own_row_asked(bert(8, 32), {mine}).half_width;
  const double batch = own_row_asked(bert(8, 8), {mine}).half_width;
  const double nodes = own_row_asked(bert(16, 32), {mine}).half_width;
  CHECK(same < batch);
  CHECK(same < nodes);  // a node says nothing of the links between two
  CHECK(batch < own_row_asked(bert(8, 8), {}).half_width);
  CHECK(nodes < own_row_asked(bert(16, 32), {}).half_width);
}

TEST_CASE("a run whose steps spread says less") {
  const double sure = own_row_asked(bert(8, 32), {slower(bert(8, 32), 0.01)}).half_width;
  const double unsure = own_row_asked(bert(8, 32), {slower(bert(8, 32), 0.2)}).half_width;
  CHECK(sure < unsure);
}

TEST_CASE("a trial is promised what it then brings") {
  Plan plan = bert(8, 32);
  const Evidence none({}, test::shipped_catalog(), EvidenceKernel{});
  REQUIRE(set_residual(plan, none));
  add_trial(plan, none);
  REQUIRE(plan.evidence->trial);
  const TrialOffer trial = *plan.evidence->trial;
  CHECK(trial.accelerators == 8);
  const double noise = plan.framework.step_jitter.value / std::sqrt(50.0);
  OwnRow run = slower(bert(8, 32), noise);
  run.step_seconds = run.modelled_seconds;  // it measures what is expected
  CHECK(own_row_asked(bert(8, 32), {run}).half_width == Approx(trial.half_width).epsilon(0.02));
}
