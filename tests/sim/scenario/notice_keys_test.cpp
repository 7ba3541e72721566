#include <catch2/catch.hpp>

#include "support/scenario_text.h"

// What a program does on a notice, how it saves, and how failures and maintenance come.
using namespace reckon;
using Catch::Matchers::Contains;
using test::errors_of;
using test::plan_of;

namespace {

std::string scenario(const std::string& program, const std::string& service = "gke") {
  return "name: notices\n"
         "workload:\n"
         "  " +
         program +
         "\n"
         "  dataset: imagenet\n"
         "  train: {epochs: 90}\n"
         "  precision: fp32\n"
         "  batch_per_accelerator: 64\n"
         "  strategy: {kind: multi_worker_mirrored}\n"
         "  checkpoint: {interval: 20min}\n"
         "cluster:\n"
         "  provider: gcp\n"
         "  service: " +
         service +
         "\n"
         "  region: us-central1\n"
         "  zone: us-central1-c\n"
         "  pools:\n"
         "    - {name: v100, machine: n1-standard-16, accelerator: {type: V100-SXM2-16, count: 2},"
         " nodes: 3, pricing: spot}\n"
         "disruptions: {maintenance: {every: 30d}, failures: {mtbf_per_accelerator: 50000h}}\n";
}

Plan planned(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const auto plan = plan_of(text, overrides);
  REQUIRE(plan);
  return *plan;
}

const std::string kOurs = "model: resnet50";
const std::string kTheirs = "container: {image: train, profile: resnet50}";

}  // namespace

TEST_CASE("reckon's own worker saves on a notice, a container only if the scenario says so") {
  const PlannedNotice ours = planned(scenario(kOurs)).jobs[0].checkpoint.notice;
  CHECK(ours.policy == OnNotice::save);
  CHECK_FALSE(ours.stated);
  CHECK_FALSE(ours.own_program);
  const PlannedNotice theirs = planned(scenario(kTheirs)).jobs[0].checkpoint.notice;
  CHECK(theirs.policy == OnNotice::none);
  CHECK_FALSE(theirs.stated);
  CHECK(theirs.own_program);
  const PlannedNotice said =
      planned(scenario(kTheirs), {"workload.checkpoint.on_notice=save"}).jobs[0].checkpoint.notice;
  CHECK(said.policy == OnNotice::save);
  CHECK(said.stated);
  CHECK_THAT(errors_of(scenario(kOurs), {"workload.checkpoint.on_notice=safe"}),
             Contains("on_notice") && Contains("save, none"));
}

TEST_CASE("GKE leaves pods half of the notice that the machine has") {
  CHECK(planned(scenario(kOurs)).reclaim.notice == Seconds{15});
  CHECK(planned(scenario(kOurs, "gce")).reclaim.notice == Seconds{30});
}

TEST_CASE("saves are blocking unless the scenario says that they are not") {
  CHECK(planned(scenario(kOurs)).jobs[0].checkpoint.save_mode == SaveMode::blocking);
  CHECK(planned(scenario(kOurs), {"workload.checkpoint.mode=async"}).jobs[0].checkpoint.save_mode ==
        SaveMode::async);
}

TEST_CASE("hangs and grouped maintenance are the catalog's or the scenario's") {
  const Plan plan = planned(scenario(kOurs));
  CHECK(plan.failures.hang_share.assumed);
  CHECK(plan.failures.hang_detection.assumed);
  CHECK_FALSE(plan.maintenance.grouped);
  const Plan said = planned(scenario(kOurs), {"disruptions.failures.hang_share=50%",
                                              "disruptions.failures.hang_detection=2h",
                                              "disruptions.maintenance.grouped=true"});
  CHECK(said.failures.hang_share.value == 0.5);
  CHECK(said.failures.hang_detection.value == Seconds{7200});
  CHECK_FALSE(said.failures.hang_detection.assumed);
  CHECK(said.maintenance.grouped);
  CHECK_THAT(errors_of(scenario(kOurs), {"disruptions.failures.hang_share=150%"}),
             Contains("hang_share"));
}

TEST_CASE("what decides a save in time is among the assumptions where it can be made") {
  const auto has = [](const Plan& plan, std::string_view key) {
    for (const PlanAssumption& a : assumptions_of(plan))
      if (a.key == key) return true;
    return false;
  };
  CHECK(has(planned(scenario(kOurs)), "checkpoint.notice_reaction"));
  CHECK(has(planned(scenario(kOurs)), "checkpoint.writer_spread"));
  CHECK_FALSE(has(planned(scenario(kTheirs)), "checkpoint.notice_reaction"));
  CHECK_FALSE(has(planned(scenario(kOurs), {"cluster.pools.v100.pricing=on_demand"}),
                  "checkpoint.notice_reaction"));
}
