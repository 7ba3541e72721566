#include <catch2/catch.hpp>

#include "sim/queue/job_story.h"
#include "sim/queue/trace.h"
#include "sim/scenario/yaml/scenario_yaml.h"

// Scenarios whose nodes Karpenter makes.
using namespace reckon;
using Catch::Contains;

namespace {

constexpr const char* kMade = R"(name: made
cluster:
  provider: aws
  service: eks
  region: us-east-1
  autoscaler: karpenter
  karpenter:
    nodePools:
      - {name: default, requirements: [], limits: {nvidia.com/gpu: 8}}
  scheduler: {policy: kubernetes, kubernetes: {preemptionPolicy: Never}}
jobs:
JOBS)";

KarpenterOffer offer_of(const std::string& name, int gpus, double usd) {
  KarpenterOffer offer;
  offer.machine.name = name;
  offer.machine.vcpus = 12 * gpus;
  offer.machine.memory = Fact<Bytes>{Bytes{gpus * 64.0 * 1073741824}};
  offer.machine.accelerator_count = gpus;
  offer.price = {static_cast<std::int64_t>(usd * 1e9)};
  offer.provisioning = Fact<Seconds>{Seconds{100}};
  return offer;
}

Expected<TraceQuestion> made(const std::string& jobs, const std::vector<std::string>& sets = {}) {
  std::string text = kMade;
  text.replace(text.find("JOBS"), 4, jobs);
  const auto scenario = parse_scenario(text, "made.yaml", sets);
  if (!scenario) return tl::unexpected(scenario.error());
  QueueSources sources;
  sources.offers = [](const ScenarioFile&) {
    return Expected<KarpenterOffers>{
        KarpenterOffers{{offer_of("g.1", 1, 1), offer_of("g.4", 4, 5)}, {}}};
  };
  return load_trace(*scenario, sources);
}

}  // namespace

TEST_CASE("jobs run on what Karpenter makes, and are charged for what they hold of it") {
  const auto question = made(
      "  - {name: a, gpus: 3, duration: 1h, team: x, pod: {gpus: 1, cpu: 8, memory: 32GiB}}\n"
      "  - {name: b, gpus: 1, duration: 2h, team: y, pod: {gpus: 1, cpu: 8, memory: 32GiB}}\n");
  if (!question) FAIL(format(question.error()));
  const TraceResult r = simulate_trace(*question, 1, 1);
  // One node of four for all pods, for 5 USD/h, though four of one would cost 4. From its request
  // at 1 s until b ends 2 h behind 101 s.
  REQUIRE(r.karpenter);
  REQUIRE(r.karpenter->by_offering.size() == 1);
  CHECK(r.karpenter->by_offering[0].type == "g.4");
  CHECK(r.karpenter->node_hours == Approx((7200 + 100) / 3600.0));
  CHECK(*r.cost_usd == Approx(5 * 7300 / 3600.0));
  CHECK(r.gpus == 4);
  CHECK(*r.utilization == Approx((3 * 3600 + 7200) / (4 * 7300.0)));
  REQUIRE(r.teams.size() == 2);
  CHECK(*r.teams[0].usd == Approx(5 * 0.75));
  CHECK(*r.teams[1].usd == Approx(5 * 0.25 * 2));
  CHECK(r.waiting->p50 == Approx(101));
}

TEST_CASE("a record's pictures show nodes that come and go, and when each job runs") {
  const auto question = made(
      "  - {name: a, gpus: 3, duration: 1h, team: x, pod: {gpus: 1, cpu: 8, memory: 32GiB}}\n"
      "  - {name: b, gpus: 1, duration: 2h, submit: 90min, pod: {gpus: 1, cpu: 8, memory: "
      "32GiB}}\n");
  if (!question) FAIL(format(question.error()));
  const auto record = record_queue(*question);
  REQUIRE(record);
  const auto& work = std::get<QueueQuestion>(question->work);
  const Occupancy seen = occupancy_of(work, *record);
  // A node of four from 1 s on, empty at 3701; then one of one for b, which comes at 5400.
  REQUIRE(seen.stays.size() == 2);
  CHECK(node_names(work, *record) == std::vector<std::string>{"g.4-0", "g.1-0"});
  const QueueSeries series = queue_series(record->list, record->run, seen, 126);  // 100 s and more
  CHECK(series.gpus == Approx(4));
  CHECK(series.in_use[10] == Approx(3));
  CHECK(series.there[10] == Approx(4));
  CHECK(series.waiting[10] == Approx(0).margin(1e-9));
  const auto at = [&](double seconds) { return std::size_t(seconds / series.span.count()); };
  CHECK(series.there[at(4500)] == Approx(0).margin(1e-9));  // neither is there
  CHECK(series.stranded[at(4500)] == Approx(0).margin(1e-9));
  CHECK(series.waiting[at(5450)] > 0.5);  // until 5501
  const JobStory story = story_of(1, record->list, record->run, seen);
  REQUIRE(story.until_ready);
  CHECK(to_seconds(*story.until_asked).count() == Approx(1));
  CHECK(to_seconds(*story.until_ready).count() == Approx(100));
  CHECK(story.free_at_submit == 0);
}

TEST_CASE("a pod that no node holds is told with the largest that there is") {
  const auto question = made("  - {name: a, gpus: 8, duration: 1h}\n");
  REQUIRE(question);
  const TraceResult r = simulate_trace(*question, 1, 1);
  CHECK(r.never == 1);
  REQUIRE_FALSE(r.warnings.empty());
  CHECK_THAT(r.warnings[0], Contains("a pod of 8 GPUs") && Contains("the largest have 4 GPUs"));
  // In pods of four it needs two nodes, which the limit of 8 GPUs lets it have.
  const auto in_pods = made("  - {name: a, gpus: 8, duration: 1h, pod: {gpus: 4}}\n");
  REQUIRE(in_pods);
  CHECK(simulate_trace(*in_pods, 1, 1).karpenter->nodes == 2);
  const auto beyond = made("  - {name: a, gpus: 12, duration: 1h, pod: {gpus: 4}}\n");
  REQUIRE(beyond);
  const TraceResult starved = simulate_trace(*beyond, 1, 1);
  CHECK(starved.karpenter->starved == 1);
  CHECK_THAT(starved.warnings.at(0), Contains("still wait for nodes"));
}

TEST_CASE("a job that no node outlives is told with what helps") {
  const auto question = made("  - {name: a, gpus: 4, duration: 3h, pod: {doNotDisrupt: false}}\n",
                             {"cluster.karpenter.nodePools.default.expireAfter=2h"});
  REQUIRE(question);
  const TraceResult r = simulate_trace(*question, 1, 1);
  CHECK(r.never == 1);
  CHECK_THAT(r.warnings.at(0), Contains("its work takes 3 h") && Contains("expireAfter") &&
                                   Contains("doNotDisrupt: true"));
}

TEST_CASE("what does not go with Karpenter's nodes is told at its place") {
  const auto wrong = [](const std::string& jobs, const std::vector<std::string>& sets = {}) {
    const auto question = made(jobs, sets);
    REQUIRE_FALSE(question);
    return format(question.error());
  };
  CHECK_THAT(wrong("  - {name: a, gpus: 6, duration: 1h, pod: {gpus: 4}}\n"),
             Contains("made.yaml:12:") && Contains("6 GPUs are no whole pods of 4 GPUs"));
  const std::string one = "  - {name: a, gpus: 1, duration: 1h}\n";
  CHECK_THAT(wrong(one, {"cluster.scheduler.kubernetes.preemptionPolicy=PreemptLowerPriority"}),
             Contains("pods that evict others are not simulated"));
  CHECK_THAT(wrong(one, {"cluster.scheduler.overflow={nodes: 2}"}),
             Contains("overflow is of nodes that stay"));
  CHECK_THAT(wrong("  - {name: a, gpus: 1, job: bert.yaml}\n"),
             Contains("made.yaml:12:") && Contains("'job' is of nodes that are known"));
  CHECK_THAT(wrong(one, {"disruptions={failures: none}"}),
             Contains("'failures' is not simulated beside 'jobs'"));
  CHECK_THAT(wrong(one, {"disruptions={preemption: !trace {file: a.csv}}"}),
             Contains("a trace is of nodes that are made again"));
  const auto scenario = parse_scenario(
      std::string(kMade).replace(std::string(kMade).find("JOBS"), 4, one), "made.yaml", {});
  REQUIRE(scenario);
  const auto without = load_trace(*scenario);
  REQUIRE_FALSE(without);
  CHECK_THAT(format(without.error()), Contains("Karpenter's machines need the catalog"));
}

TEST_CASE("a scenario says when nodes drift, and which jobs keep theirs") {
  const auto run = [](const std::string& pod) {
    const auto question = made("  - {name: a, gpus: 1, duration: 2h, pod: {gpus: 1" + pod + "}}\n",
                               {"disruptions={drift: [1h]}"});
    if (!question) FAIL(format(question.error()));
    return simulate_trace(*question, 1, 1);
  };
  const TraceResult kept = run("");  // do-not-disrupt is the default
  CHECK(kept.karpenter->drifted == 0);
  CHECK(kept.karpenter->nodes == 1);
  const TraceResult moved = run(", doNotDisrupt: false");
  CHECK(moved.karpenter->drifted == 1);
  CHECK(moved.karpenter->replacements == 1);
  CHECK(moved.karpenter->nodes == 2);
  CHECK_FALSE(moved.karpenter->refused);  // no spot
}
