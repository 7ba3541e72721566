#include "planner/remedies.h"
#include "planner/nodes_in_room.h"
#include "planner/space/space.h"

#include <catch2/catch.hpp>
#include <set>

#include "sim/scenario/split_text.h"
#include "sim/step/network/network.h"
#include "support/scenario_text.h"
#include "support/small_job.h"
#include "support/text.h"

namespace reckon::planner {
namespace {

using namespace std::chrono_literals;

/// A perceptron on `nodes` nodes, 32 samples a step.
std::string job(int nodes, const std::string& strategy, const std::string& price = "2 USD/h") {
  std::string text = test::small_job("mlp", strategy, 1000);
  const std::string batch = "batch_per_accelerator: 8";
  text.replace(text.find(batch), batch.size(),
               "batch_per_accelerator: " + std::to_string(32 / nodes));
  return text +
         "    - {name: here, role: worker, machine: {vcpu: 1, memory: 2GiB, network: 100Gbps, "
         "price: " +
         price + "}, nodes: " + std::to_string(nodes) + "}\n";
}
/// A larger one, whose steps are shorter with more workers.
std::string large_job(int nodes) {
  std::string text =
      job(nodes, "{kind: multi_worker_mirrored, workers: " + std::to_string(nodes) + "}");
  const auto put = [&](const std::string& old, const std::string& with) {
    text.replace(text.find(old), old.size(), with);
  };
  put("mlp_boston_housing", "mlp_mnist");
  put("bytes_per_sample: 112B", "bytes_per_sample: 785B");
  put("batch_per_accelerator: " + std::to_string(32 / nodes),
      "batch_per_accelerator: " + std::to_string(2048 / nodes));
  return text;
}
std::string mirrored(int workers) {
  return "{kind: multi_worker_mirrored, workers: " + std::to_string(workers) + "}";
}

struct Run {
  std::string text;
  ScenarioFile file = parse_scenario(text, "s.yaml").value();
  Plan plan = test::checked_plan_of(text);

  std::vector<std::vector<std::string>> changes(const std::vector<int>& nodes) const {
    std::vector<std::vector<std::string>> all;
    for (const auto& one : changes_of_run(file.scenario, plan, nodes)) all.push_back(texts(one));
    return all;
  }
  RemedyQuestion question(RunSoFar so_far, RunLimits limits, double factor = 1) const {
    RemedyQuestion q;
    q.changes = changes_of_run(file.scenario, plan, nodes_of_run(file.scenario));
    q.now = plan;
    q.so_far = so_far;
    q.limits = limits;
    q.here = [this, factor](std::span<const Change> made) -> std::optional<PlanHere> {
      auto changed = test::plan_of(text, planner::texts(made));
      if (!changed) return std::nullopt;
      return PlanHere{std::move(*changed), factor, 0.05};
    };
    return q;
  }
};

TEST_CASE("a limit is missed by the replications that end behind it or cost more") {
  const std::vector<double> times{10, 20, 30, 40}, costs{4, 3, 2, 1};
  CHECK(outlook_of(times, costs, {25s, {}}).miss == 0.5);
  CHECK(outlook_of(times, costs, {{}, Usd{3.5}}).miss == 0.25);
  CHECK(outlook_of(times, costs, {35s, Usd{3.5}}).miss == 0.5);  // another replication each
  CHECK(outlook_of(times, costs, {{}, {}}).miss == 0);
  CHECK(outlook_of(times, {}, {{}, Usd{3.5}}).miss == 1);  // nobody knows what it costs
}

TEST_CASE("the rest of a run takes its steps as measured, with the start before them") {
  const Run run{job(2, mirrored(2))};
  const auto network = make_default_network();
  const Seconds step = estimate_step(run.plan, run.plan.only_job(), *network).step;
  const RestOfRun once = rest_of_run({run.plan, 1, 0}, 1'000'000, *network, 20, 1);
  const RestOfRun slow = rest_of_run({run.plan, 3, 0}, 1'000'000, *network, 20, 1);
  const RestOfRun half = rest_of_run({run.plan, 3, 0}, 500'000, *network, 20, 1);
  for (std::size_t k = 0; k < 20; ++k) {
    CHECK(slow.seconds[k] - half.seconds[k] == Approx(500'000 * 3 * step.count()).epsilon(0.001));
    CHECK(slow.seconds[k] > once.seconds[k]);
    // Two nodes of 2 USD an hour.
    CHECK(slow.usd[k] == Approx(4 * slow.seconds[k] / 3600).epsilon(0.02));
  }
}

TEST_CASE("changes of a run keep the samples of a step") {
  const Run run{job(2, mirrored(2))};
  const auto all = run.changes({1, 2, 3, 4});
  std::set<int> workers;
  for (const auto& changes : all) {
    INFO(changes.front());
    const auto plan = test::plan_of(run.text, changes);
    REQUIRE(plan);
    CHECK(plan->only_job().global_batch == 32);
    workers.insert(plan->only_job().strategy.workers);
  }
  CHECK(workers == std::set{1, 2, 4});  // three workers cannot share 32 samples evenly
}

TEST_CASE("a model with a global batch is cut as well") {
  std::string text = job(2, mirrored(2));
  const std::string batch = "batch_per_accelerator: 16";
  text.replace(text.find(batch), batch.size(), "global_batch: 32");
  const Run run{text};
  bool tensor = false;
  for (const auto& changes : run.changes({2}))
    for (const std::string& change : changes) {
      CHECK(!test::contains(change, "batch_per_accelerator"));
      tensor = tensor || test::contains(change, "tensor: 2");
    }
  CHECK(tensor);
}

TEST_CASE("asynchronous training has no remedy: its steps are not of one batch") {
  std::string text = test::small_job(
      "mlp", "{kind: parameter_server, workers: 2, parameter_servers: 1, mode: asynchronous}", 100);
  text += test::small_pool(2) +
          "    - {name: servers, role: parameter_server, machine: {vcpu: 1, memory: 2GiB, network: "
          "10Gbps}, nodes: 1}\n";
  const Run run{text};
  CHECK(run.changes({1, 2, 4}).empty());
}

TEST_CASE("nodes to consider: the plan block's, the pool's range, else up to twice as many") {
  const auto nodes = [](const std::string& text) {
    return nodes_of_run(parse_scenario(text, "s.yaml").value().scenario);
  };
  CHECK(nodes(job(2, mirrored(2))) == std::vector{1, 2, 3, 4});
  CHECK(nodes(job(2, mirrored(2)) + "plan: {vary: {nodes: [2, 8]}}\n") == std::vector{2, 8});
}

TEST_CASE("where there is room for fewer, what the run has it keeps") {
  // Two workers a node, two nodes.
  CHECK(nodes_in_room({1, 2, 3, 4}, 4, 2, 6) == std::vector{1, 2, 3});
  CHECK(nodes_in_room({1, 2, 3, 4}, 4, 2, 0) == std::vector{1, 2});
  CHECK(nodes_in_room({8}, 4, 2, 6).empty());
}

/// Of 100,000 steps a thousand times as long as the model says: starts are nothing beside them.
struct LongRun {
  explicit LongRun(const std::string& text) : run{text} {
    step = estimate_step(run.plan, run.plan.only_job(), *network).step;
    kept = double(kLeft) * step.count() * kSlower;
  }
  Remedy best(RunLimits limits) const {
    const auto found = remedies(run.question(so_far, limits, kSlower), *network);
    REQUIRE(!found.empty());
    return found.front();
  }
  double step_of(const std::string& text) const {
    const Plan other = test::checked_plan_of(text);
    return estimate_step(other, other.only_job(), *network).step.count();
  }
  static constexpr double kSlower = 1000;
  static constexpr std::int64_t kLeft = 100'000;
  std::unique_ptr<NetworkModel> network = make_default_network();
  Run run;
  Seconds step{};
  double kept = 0;  // seconds of the steps that are left, as it is
  RunSoFar so_far{.steps_left = kLeft, .elapsed = 100s, .spent = Usd{1}, .stop = 1s};
};

TEST_CASE("a run that will be late gets more workers") {
  const LongRun late(large_job(2));
  const double faster = late.step_of(large_job(4)) / late.step.count();
  REQUIRE(faster < 0.8);
  const Remedy r = late.best({Seconds{100 + 0.9 * late.kept}, {}});
  CHECK(r.what.starts_with("two more workers"));
  CHECK(r.outlook.miss < 0.1);
  CHECK(r.outlook.time_seconds.p50 < 100 + 0.9 * late.kept);
}

TEST_CASE(
    "a run that will be too dear gets fewer workers, where they take less than twice as long") {
  const LongRun dear(job(2, mirrored(2)));
  REQUIRE(dear.step_of(job(1, mirrored(1))) < 1.9 * dear.step.count());
  const double usd = 1 + 4 * dear.kept / 3600;
  const Remedy r = dear.best({{}, Usd{1 + (usd - 1) * 0.97}});
  CHECK(r.what.starts_with("one worker fewer"));
  REQUIRE(r.outlook.cost_usd);
  CHECK(r.outlook.cost_usd->mean < usd);
}

TEST_CASE("a search that is told to stop ends with nothing") {
  const LongRun late(job(2, mirrored(2)));
  std::stop_source stop;
  stop.request_stop();
  CHECK(
      remedies(late.run.question(late.so_far, {1s, {}}), *late.network, stop.get_token()).empty());
}

TEST_CASE("what changes, in words") {
  const auto words = [](int from, const std::string& text) {
    return what_changes(test::checked_plan_of(job(from, mirrored(from))),
                        test::checked_plan_of(text));
  };
  CHECK(words(2, job(4, mirrored(4))) == "two more workers");
  CHECK(words(2, job(1, "{kind: single}")) == "one worker fewer");
  CHECK(words(2, job(2, mirrored(2))) == "");
  CHECK(words(1, job(2, "{kind: sharded, workers: 2, zero_stage: 2}")) ==
        "one more worker as sharded, ZeRO-2");
  CHECK(words(2, job(2, "{kind: sharded, workers: 2, zero_stage: 1}")) ==
        "the same workers as sharded, ZeRO-1");
}

TEST_CASE("a run's change and a plan's candidate name a split alike") {
  const Layout layout{.data = 4, .tensor = 2, .expert = 2, .micro_batch = 3};
  const std::string split = split_text(StrategyKind::model_parallel, layout, 0);
  CHECK(split == "model_parallel, data 4 x tensor 2 x pipeline 1, expert 2");
  CHECK(strategy_text({.kind = StrategyKind::model_parallel, .nodes = 1, .layout = layout}) ==
        split + ", batch 3");
  CHECK(split_text(StrategyKind::parameter_server, {}, 2) == "parameter_server, 2 servers");
}

}  // namespace
}  // namespace reckon::planner
