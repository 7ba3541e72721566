#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "sim/base/limits.h"
#include "sim/forecast/forecast.h"
#include "sim/forecast/work.h"
#include "support/scenario_text.h"

// How much work a forecast is, said before it is done.
using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

std::string jobs_text(int nodes, int jobs, const std::string& disruptions = "") {
  return fmt::format(R"(name: many
jobs:
  - name: small
    every: 1h
    times: {}
    workload: {{model: resnet18, dataset: imagenet, train: {{epochs: 1}}, precision: fp32,
               batch_per_accelerator: 64, strategy: {{kind: mirrored}},
               checkpoint: {{interval: 10min}}}}
cluster:
  provider: on_premises
  pools:
    - name: all
      machine: {{vcpu: 64, memory: 512GiB, network: 100Gbps, price: 9 USD/h}}
      accelerator: {{type: A100-SXM4-80, count: 1}}
      nodes: {}
      pricing: on_demand
{})",
                     jobs, nodes, disruptions);
}

ForecastSetup setup_of(const Plan& plan) { return make_setup(plan, *make_fluid_network()); }

std::string refusal(const Plan& plan, double lives, const WorkLimits& limits) {
  try {
    check_work(setup_of(plan), lives, 1, limits);
  } catch (const TooMuchWork& e) {
    return std::string(e.what()) + " | " + e.hint;
  }
  return "";
}

}  // namespace

TEST_CASE("the events of a life are foreseen within a factor of three") {
  const std::string failures = "disruptions: {failures: {mtbf_per_accelerator: 30h}}\n";
  for (const auto& [nodes, jobs, rest] : {std::tuple{50, 20, std::string()},
                                          {200, 1, ""},
                                          {1, 100, ""},
                                          {20, 200, failures},
                                          {100, 10, failures}}) {
    const auto plan = plan_of(jobs_text(nodes, jobs, rest));
    if (!plan) FAIL(format(plan.error()));
    const ForecastSetup setup = setup_of(*plan);
    const LifeResult life = Replicator(setup).run(1, 0);
    const LifeWork work = work_of_life(setup);
    CAPTURE(nodes, jobs, rest, life.events, work.events);
    CHECK(work.events < 3 * double(life.events) + 50);
    CHECK(work.events > double(life.events) / 3 - 50);
    const double seconds = to_seconds(life.finish - SimTime{}).count();
    CHECK(work.seconds_of_life < 2 * seconds);
    CHECK(work.seconds_of_life > 0.5 * seconds);
  }
}

TEST_CASE("what takes more than the limits is refused with the number and the way out") {
  const auto plan = plan_of(jobs_text(1000, 1000));
  REQUIRE(plan);
  CHECK(refusal(*plan, 1, WorkLimits{}).empty());
  const std::string slow = refusal(*plan, 1e6, WorkLimits{});
  CHECK_THAT(slow, Contains("1,000,000 replications of 1,000 jobs on 1,000 nodes take about") &&
                       Contains("of one core") && Contains("fewer replications, jobs or nodes") &&
                       Contains("RECKON_MAX_CPU_TIME="));
  const std::string large = refusal(*plan, 1e6, {.cpu_seconds = 1e12});
  CHECK_THAT(large, Contains("of memory") && Contains("RECKON_MAX_MEMORY="));
  CHECK(refusal(*plan, 1e6, {.cpu_seconds = 1e12, .bytes = 1e15}).empty());
}

TEST_CASE("a forecast that would take days is refused before its first life") {
  ForecastOptions options;
  options.threads = 1;
  options.assumption_effects = false;
  options.replications = 1'000'000;
  bool began = false;
  options.progress = [&](double) { began = true; };
  const auto plan = plan_of(jobs_text(65'536, 1000));
  if (!plan) FAIL(format(plan.error()));
  CHECK_THROWS_AS(make_forecast(*plan, *make_fluid_network(), options), TooMuchWork);
  CHECK_FALSE(began);
}

TEST_CASE("spot nodes that hardly live are much work, and known to be") {
  const std::string spot =
      "disruptions: {preemption: !exponential {mean: 1s}, failures: none, maintenance: none}\n";
  std::string text = jobs_text(1000, 1, spot);
  text.replace(text.find("on_demand"), 9, "spot");
  const auto plan = plan_of(text);
  if (!plan) FAIL(format(plan.error()));
  CHECK(work_of_life(setup_of(*plan)).events > 1e7);
  CHECK_FALSE(refusal(*plan, 1000, WorkLimits{}).empty());
}

TEST_CASE("the environment lifts the limits, and what it says wrongly is an error") {
  setenv("RECKON_MAX_CPU_TIME", "12h", 1);
  setenv("RECKON_MAX_MEMORY", "2GB", 1);
  CHECK(work_limits().cpu_seconds == 12 * 3600);
  CHECK(work_limits().bytes == 2e9);
  setenv("RECKON_MAX_MEMORY", "much", 1);
  CHECK_THROWS_WITH(work_limits(), Contains("RECKON_MAX_MEMORY") && Contains("much"));
  unsetenv("RECKON_MAX_CPU_TIME");
  unsetenv("RECKON_MAX_MEMORY");
  CHECK(work_limits().cpu_seconds == WorkLimits{}.cpu_seconds);
}

TEST_CASE("more jobs than memory holds are refused before they are planned") {
  std::string text = jobs_text(10, 1000);
  const std::size_t begin = text.find("  - name: small"), end = text.find("cluster:");
  const std::string job = text.substr(begin, end - begin);
  std::string jobs;
  for (int k = 0; k < 100; ++k) {
    std::string one = job;
    one.replace(one.find("small"), 5, fmt::format("small{}", k));
    jobs += one;
  }
  text.replace(begin, job.size(), jobs);
  CHECK_THAT(errors_of(text), Contains("jobs up to 'small") && Contains("of memory") &&
                                  Contains("fewer jobs, or fewer times; RECKON_MAX_MEMORY="));
}
