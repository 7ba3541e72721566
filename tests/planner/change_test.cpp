#include <catch2/catch.hpp>

#include <algorithm>

#include "planner/small_spaces.h"
#include "sim/scenario/artifact/artifact.h"

// Changes of a scenario: the same as values, which the search applies, and as text, which people
// read and give to other commands.
using namespace reckon;
using namespace reckon::test;

namespace {

struct Asked {
  const char* pools;     // of the cluster
  const char* workload;  // batch and strategy
  const char* vary;
};

constexpr const char* kOnePool =
    "[{name: workers, machine: n1-standard-16, accelerator: {type: T4, count: 1}, nodes: 2}]";
constexpr const char* kWithServers =
    "[{name: workers, role: worker, machine: n1-standard-16, accelerator: {type: T4, count: 1}, "
    "nodes: 2}, {name: ps, role: parameter_server, machine: n1-highmem-8, nodes: 1}]";
constexpr const char* kSimple = "batch_per_accelerator: 32, strategy: {kind: single}";

/// Questions that change a scenario in every way that the planner has.
const std::vector<Asked>& all_asked() {
  static const std::vector<Asked> kAll{
      {kOnePool, kSimple, "{nodes: 1..3, pricing: [spot, on_demand]}"},
      {kOnePool, kSimple,
       "{machine: [n1-standard-8, n1-standard-16], accelerator: [T4, V100-SXM2-16], region: "
       "[us-central1, us-west1], precision: any}"},
      {kOnePool, kSimple,
       "{provider: [gcp, aws], accelerator: [T4], checkpoint_interval: [90s, 90min, none, optimal, "
       "0.5s], nodes: 1..2}"},
      {kOnePool, kSimple, "{nodes: 1..4, zone: any, checkpoint_storage: [gcs-standard]}"},
      {kOnePool, kSimple,
       "{accelerator: [T4], nodes: 2..4, pricing: spot, base: 25% on_demand, fallback: [10min, "
       "100s]}"},
      {kOnePool, kSimple, "{nodes: 2..4, autoscaling: [fixed, 0..100%, 125%]}"},
      {kOnePool, "batch_per_accelerator: 1, strategy: {kind: single}",
       "{nodes: 1..2, global_batch: 1..512, recompute: any}"},
      {kOnePool, "global_batch: 256, strategy: {kind: multi_worker_mirrored, all_reduce: ring}",
       "{nodes: 1..4, recompute: any}"},
      {kOnePool, "global_batch: 64, strategy: {kind: sharded}",
       "{nodes: 1..4, strategy: [sharded, model_parallel], layout: any}"},
      {kOnePool, "global_batch: 64, strategy: {kind: model_parallel, all_reduce: tree}",
       "{nodes: 2..4, layout: any}"},
      {kOnePool, "batch_per_accelerator: 16, strategy: {kind: parameter_server}",
       "{nodes: 1..2, parameter_servers: 0..2, parameter_server_machine: [n1-highmem-8]}"},
      {kWithServers,
       "batch_per_accelerator: 16, strategy: {kind: parameter_server, workers: 2, "
       "backup_workers: 1}",
       "{nodes: 2..3, parameter_servers: 1..2, region: [us-central1, us-west1]}"},
      {kWithServers, "batch_per_accelerator: 16, strategy: {kind: parameter_server}",
       "{nodes: 1..2, parameter_server_machine: [n1-highmem-8, n1-standard-8], parameter_servers: "
       "1..2}"},
  };
  return kAll;
}

std::string text_of(const Asked& asked) {
  return fmt::format(
      "name: changed\n"
      "workload: {{model: resnet50, dataset: imagenet, train: {{steps: 5000}}, {}}}\n"
      "cluster: {{provider: gcp, region: us-central1, pools: {}}}\n"
      "plan: {{vary: {}}}\n",
      asked.workload, asked.pools, asked.vary);
}

planner::Question change_question(const std::string& text) {
  planner::Base base;
  base.text = text;
  base.name = "changed.yaml";
  auto question = planner::make_question(std::move(base), shipped_catalog());
  if (!question) throw std::runtime_error(format(question.error()));
  return std::move(*question);
}

std::string digest_of(const Plan& plan) {
  RunArtifact artifact;
  artifact.plan = plan;
  return artifact_digest(artifact);
}

struct Tried {
  std::string text;
  planner::Question question;
  planner::Space space;
};
/// Some candidates, from the most to the least promising.
Tried tried(const Asked& asked) {
  const std::string text = text_of(asked);
  planner::Question question = change_question(text);
  const auto network = make_fluid_network();
  planner::Space space =
      planner::make_space(question, shipped_catalog(), *network, {.replications = 10});
  constexpr std::size_t kSome = 24;
  const std::size_t stride = std::max<std::size_t>(1, space.candidates.size() / kSome);
  std::vector<planner::Candidate> some;
  for (std::size_t k = 0; k < space.candidates.size(); k += stride)
    some.push_back(space.candidates[k]);
  space.candidates = std::move(some);
  return {text, std::move(question), std::move(space)};
}

}  // namespace

TEST_CASE("a candidate's plan is that of its texts put over the scenario") {
  for (const Asked& asked : all_asked()) {
    const Tried t = tried(asked);
    INFO(t.text);
    CHECK(t.space.candidates.size() >= 2);
    for (const planner::Candidate& c : t.space.candidates) {
      const auto changes = planner::changes_of(t.question, t.space, c);
      const auto words = planner::texts(changes);
      INFO(fmt::format("{}", fmt::join(words, "\n")));
      const auto file = parse_scenario(t.text, "changed.yaml", words);
      REQUIRE(file);
      const auto read = make_plan(*file, shipped_catalog());
      const auto made = planner::plan_of(t.question, shipped_catalog(), t.space, c);
      REQUIRE(read.has_value() == made.has_value());
      if (made) CHECK(digest_of(*made) == digest_of(*read));
    }
  }
}

TEST_CASE("what no candidate chooses of a strategy stays as the scenario has it") {
  const Tried t =
      tried({kOnePool, "global_batch: 64, strategy: {kind: model_parallel, all_reduce: tree}",
             "{nodes: 2..4, layout: any}"});
  int own = 0;
  for (const planner::Candidate& c : t.space.candidates) {
    if (t.space.split(c).kind != StrategyKind::model_parallel) continue;
    ++own;
    const auto made = planner::plan_of(t.question, shipped_catalog(), t.space, c);
    REQUIRE(made);
    CHECK(made->only_job().strategy.all_reduce == AllReduceKind::tree);
  }
  CHECK(own > 0);
}

TEST_CASE("the search takes a step of the job that make_plan resolves") {
  for (const Asked& asked : all_asked()) {
    const Tried t = tried(asked);
    INFO(t.text);
    for (const planner::Candidate& c : t.space.candidates) {
      const auto made = planner::plan_of(t.question, shipped_catalog(), t.space, c);
      REQUIRE(made);
      planner::HardwarePlan on(t.question, t.space.site(c).hardware, shipped_catalog());
      REQUIRE(on.make().empty());
      REQUIRE(on.take(t.space.split(c)).empty());
      Plan same = *made;
      same.jobs = on.plan.jobs;
      CHECK(digest_of(same) == digest_of(*made));
      CHECK(t.space.split(c).steps == made->jobs.front().steps);
    }
  }
}

TEST_CASE("a change prints as the option that makes it") {
  using namespace planner;
  const auto text = [](Change change) { return to_text(change); };
  CHECK(text(SetNodes{"a", {3, 3, 3}}) == "cluster.pools.a.nodes=3");
  CHECK(text(SetNodes{"a", {0, 0, 4}}) == "cluster.pools.a.nodes={initial: 0, min: 0, max: 4}");
  CHECK(text(SetZone{""}) == "cluster.zone=''");
  CHECK(text(SetCapacityType{"a", CapacityType::spot}) == "cluster.pools.a.pricing=spot");
  using Mode = CheckpointSpec::Mode;
  const auto interval = [&](Seconds s) { return text(SetCheckpointInterval{Mode::interval, s}); };
  CHECK(interval(Seconds{5400}) == "workload.checkpoint.interval=90min");
  CHECK(interval(Seconds{7200}) == "workload.checkpoint.interval=2h");
  CHECK(interval(Seconds{90.5}) == "workload.checkpoint.interval=90.5s");
  StrategySpec strategy;
  strategy.kind = StrategyKind::sharded;
  strategy.workers = 4;
  strategy.zero_stage = 3;
  strategy.recompute = Recompute::full;
  CHECK(text(SetStrategy{strategy}) ==
        "workload.strategy={kind: sharded, workers: 4, zero_stage: 3, recompute: full}");
}

TEST_CASE("what a pool cannot hold is refused whether it is written or changed") {
  const planner::Question question =
      change_question(text_of({kOnePool, kSimple, "{nodes: 1..2, autoscaling: [fixed]}"}));
  const std::vector<planner::Change> changes{
      planner::SetNodes{"workers", {70'000, 70'000, 70'000}}};
  CHECK_FALSE(planner::plan_with(question, changes, shipped_catalog()));
  CHECK_FALSE(parse_scenario(question.base.text, "changed.yaml", planner::texts(changes)));
}
