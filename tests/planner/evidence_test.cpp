#include <catch2/catch.hpp>

#include "planner/small_spaces.h"
#include "support/shipped_evidence.h"

// Whole plans over hardware that published runs measured and such that none did.
using namespace reckon;
using namespace reckon::test;

namespace {

constexpr const char* kText = R"(
name: hardware
workload:
  model: gpt2_medium
  dataset: openwebtext
  train: {tokens: 5B}
  precision: bf16
  batch_per_accelerator: 8
  strategy: {kind: mirrored}
cluster:
  provider: gcp
  region: us-central1
  pools: [{name: workers, machine: a2-highgpu-8g, nodes: 1}]
forecast: {replications: 12, seed: 3}
plan:
  vary:
    accelerator: [A100-SXM4-40, A100-SXM4-80, H100-SXM5-80, B200-SXM]
    nodes: 1..2
    strategy: any
  objective: p95_time
)";

/// Of an answer that has no runs of `unmeasured`, best first.
std::vector<planner::RankedPlan> plans_without(const std::string& unmeasured) {
  const EvidenceFiles& files = shipped_evidence_files();
  std::vector<PublishedRun> runs;
  for (const PublishedRun& run : files.runs())
    if (run.run.accelerator != unmeasured) runs.push_back(run);
  REQUIRE(runs.size() < files.runs().size());
  const Evidence evidence(runs, shipped_catalog(), files.kernel().value());
  planner::Question question = question_of(kText, shipped_catalog());
  question.base.evidence = &evidence;
  planner::PlannerOptions how;
  how.threads = 1;
  how.keep = 1000;
  how.exact_up_to = 1000;
  const auto network = make_default_network();
  auto answer = planner::plan(question, shipped_catalog(), *network, how);
  REQUIRE(answer);
  return std::move(answer->plans);
}

}  // namespace

TEST_CASE("no plan on hardware that nobody measured comes first by a narrower range") {
  const std::string unmeasured = GENERATE("H100-SXM5-80", "B200-SXM");
  const std::vector<planner::RankedPlan> plans = plans_without(unmeasured);
  int pairs = 0;
  for (std::size_t u = 0; u < plans.size(); ++u) {
    if (plans[u].hardware.accelerator != unmeasured) continue;
    for (std::size_t m = u + 1; m < plans.size(); ++m) {
      const planner::Split &of_u = plans[u].split, &of_m = plans[m].split;
      if (plans[m].hardware.accelerator == unmeasured || of_u.nodes != of_m.nodes) continue;
      ++pairs;
      INFO(unmeasured << " above " << plans[m].hardware.accelerator << ", nodes " << of_u.nodes);
      CHECK(of_u.residual_half_width >= of_m.residual_half_width);
    }
  }
  CHECK(pairs > 3);
}
