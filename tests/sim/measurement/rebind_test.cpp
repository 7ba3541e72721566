#include "sim/measurement/rebind.h"

#include <catch2/catch.hpp>

#include "sim/scenario/own_program.h"
#include "support/scenario_text.h"
#include "support/shipped_catalog.h"

using namespace reckon;
using namespace reckon::test;

namespace {

RunArtifact planned(const std::string& scenario) {
  return {.plan = shipped_plan(scenario).value()};
}

ThisMachine unknown_machine() {
  ThisMachine here;
  here.operations = &shipped_catalog().operations;
  return here;
}

ProcessorRates round_rates() {
  const ProductTimes products{.extents = {64}, .times = {Seconds{1e-4}}};
  const StreamTimes streams{{{Bytes{1e6}, Seconds{1e-3}}}};
  return {.processor = "a processor",
          .cores = 4,
          .together = products,
          .apart = products,
          .streams = streams,
          .streams_apart = streams};
}

}  // namespace

TEST_CASE("a plan that runs here is another plan, which names the one that it was made of") {
  const RunArtifact before = planned("gke-p100-autoscaling");
  const Rebound here = rebind(before, unknown_machine());
  REQUIRE(here.artifact.rebound);
  CHECK(here.artifact.rebound->target == "this machine");
  CHECK(here.artifact.rebound->from == artifact_digest(before));
  CHECK(artifact_digest(here.artifact) != artifact_digest(before));
  CHECK(here.artifact.plan.pools.front().provisioning.value == Seconds{0});
  CHECK(before.plan.pools.front().provisioning.value > Seconds{0});
  CHECK_FALSE(here.run);
  CHECK(digests_of(here.artifact).planned == artifact_digest(before));
  CHECK(digests_of(before).planned.empty());
}

TEST_CASE("on GPUs our own program has its stack, a program of one's own the scenario's") {
  RunArtifact plan = planned("gke-p100-autoscaling");
  CHECK(rebind(plan, unknown_machine()).artifact.plan.only_job().stack == "reckon-cuda");
  plan.container.emplace();
  const std::string own = plan.plan.only_job().stack;
  CHECK(rebind(plan, unknown_machine()).artifact.plan.only_job().stack == own);
  CHECK(own != "reckon-cuda");
  const RunArtifact cpus = planned("small-mlp-cpu");
  CHECK(rebind(cpus, unknown_machine()).artifact.plan.only_job().stack ==
        cpus.plan.only_job().stack);
}

TEST_CASE("the same plan and machine give the same plan, another machine another") {
  const RunArtifact before = planned("small-mlp-cpu");
  const ProcessorRates rates = round_rates();
  ThisMachine machine = unknown_machine();
  machine.name = "a processor, 4 cores";
  machine.rates = &rates;
  const Rebound once = rebind(before, machine), twice = rebind(before, machine);
  CHECK(artifact_digest(once.artifact) == artifact_digest(twice.artifact));
  REQUIRE(once.run);
  CHECK(once.run->machine == "a processor, 4 cores");
  REQUIRE(once.artifact.plan.pools.front().measured_rates);
  ProcessorRates faster = rates;
  faster.together.times = {Seconds{5e-5}};
  faster.apart.times = {Seconds{5e-5}};
  machine.rates = &faster;
  CHECK(artifact_digest(rebind(before, machine).artifact) != artifact_digest(once.artifact));
  // What was measured of this machine reads back as any other plan does.
  const auto read = read_artifact(write_artifact(once.artifact), "plan.reckon");
  REQUIRE(read);
  CHECK(read->digest == artifact_digest(once.artifact));
}

TEST_CASE("passes that were measured are the workers' own") {
  const RunArtifact before = planned("small-mlp-cpu");
  const ProcessorRates rates = round_rates();
  ThisMachine machine = unknown_machine();
  machine.rates = &rates;
  const auto network = [&](std::optional<Seconds> passes) {
    machine.passes = [&](const PlannedPool&, const PlannedWorkload&) { return passes; };
    return rebind(before, machine).artifact.plan.pools.front().measured_rates->network;
  };
  CHECK(network(std::nullopt) == 1);
  CHECK(network(Seconds{1}) / network(Seconds{2}) == Approx(0.5));
}

TEST_CASE("a run's forecast has evaluation passes where our own program has data for them") {
  RunArtifact plan = planned("gke-p100-autoscaling");
  const auto here = [&] { return rebind(plan, unknown_machine()).artifact.plan; };
  const double passes = plan.plan.only_job().evaluations;
  REQUIRE(passes > 0);
  CHECK(here().only_job().evaluations == passes);  // made-up images
  CHECK(left_out_by_own_program(plan.plan).empty());

  DataSpec& data = plan.plan.jobs.front().data;
  data.format = DataFormat::image_folder;
  data.path = "images";
  CHECK(left_out_by_own_program(plan.plan).starts_with("workload.evaluation: "));
  CHECK(here().only_job().evaluations == 0);
  CHECK(left_out_by_own_program(here()).empty());
  data.validation = "held-out";
  CHECK(here().only_job().evaluations == passes);
  data.validation = "";
  plan.container.emplace();
  CHECK(here().only_job().evaluations == passes);
}
