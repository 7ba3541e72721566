#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "lives.h"
#include "sim/cluster/disruptions.h"

// Flex-start, ProvisioningRequests and slices of several hosts [cloud.google.com/kubernetes-engine/
// docs, "About flex-start", "Run a large-scale workload with flex-start with queued provisioning",
// "About TPUs in GKE"; cluster-autoscaler/FAQ.md, "ProvisioningRequest"].
using namespace reckon;
using namespace reckon::test;
using namespace std::chrono_literals;

namespace {

Case with_model(ProvisioningModel model, int nodes = 2) {
  Case c = round_case(nodes);
  autoscale(c, 0, 0, nodes);
  c.plan.pools[0].provisioning_model = model;
  if (is_flex_start(model)) c.plan.pools[0].capacity_wait = Fact<Seconds>{Seconds{3000}};
  c.options.record = true;
  return c;
}

/// 300 s to 30,000 s from the request to capacity.
void spread_wait(Case& c) {
  Fact<Seconds>& wait = c.plan.pools[0].capacity_wait;
  wait.low = Seconds{300};
  wait.high = Seconds{30'000};
}

double seconds(SimTime t) { return to_seconds(t.time_since_epoch()).count(); }

/// When each node became ready first.
std::vector<double> ready_at(const LifeResult& life) {
  std::vector<double> times;
  for (const Span& span : life.timeline.spans)
    if (span.category == "node" && span.name == "provisioning") times.push_back(seconds(span.end));
  return times;
}

double provisioning_node_seconds(const LifeResult& life) {
  return std::round(to_seconds(life.node_time[0]).count() * 1e3) / 1e3;
}

}  // namespace

TEST_CASE("a flex-start node waits for capacity, is never given up, and is billed from there") {
  Case c = with_model(ProvisioningModel::flex_start, 1);
  const LifeResult life = c.run();
  // Asked for at 0, there at 3,000, ready at 3,100: far behind max_node_provision_time.
  CHECK(finish_seconds(life) == 3000 + 100 + 1000);
  CHECK(provisioning_node_seconds(life) == 100 + 1000 + 600);
  CHECK(badput(life, Badput::provisioning) == 3100);
}

TEST_CASE("with queued provisioning all nodes come at once, without each comes by itself") {
  Case queued = with_model(ProvisioningModel::flex_start_queued, 4);
  spread_wait(queued);
  const std::vector<double> together = ready_at(queued.run());
  REQUIRE(together.size() == 4);
  CHECK(std::ranges::count(together, together.front()) == 4);
  Case single = with_model(ProvisioningModel::flex_start, 4);
  spread_wait(single);
  std::vector<double> apart = ready_at(single.run());
  std::ranges::sort(apart);
  CHECK(std::ranges::adjacent_find(apart) == apart.end());
}

TEST_CASE("queued provisioning asks for a job's nodes only when there is room for all of them") {
  Case c = with_model(ProvisioningModel::flex_start_queued, 2);
  autoscale(c, 0, 0, 3);
  c.plan.jobs.push_back(c.plan.jobs[0]);
  const std::vector<JobPace> paces(2, c.pace);
  const LifeResult life = simulate_life(c.plan, requests_of(c.plan, paces), c.options);
  // The second job's two nodes do not fit beside the first's: it takes those at their end.
  CHECK(seconds(life.jobs[0].finish) == 4100);
  CHECK(seconds(life.jobs[1].finish) == 5100);
  CHECK(ready_at(life).size() == 2);
}

TEST_CASE("a node ends when its longest run is over, and the job queues again") {
  Case c = with_model(ProvisioningModel::flex_start_queued, 2);
  c.plan.pools[0].max_run_duration = Seconds{600};
  checkpoints(c, Seconds{100}, Seconds{0});
  const LifeResult life = c.run();
  // Ready at 3,100, over at 3,700 with 600 s of work saved; asked for again at 3,700, ready at
  // 6,800, and 400 s are left.
  CHECK(finish_seconds(life) == 6800 + 400);
  CHECK(count(life, Interruption::maintenance) == 2);
  CHECK(count(life, Interruption::preemption) == 0);
  CHECK(goodput(life) == 2 * 1000);
  c.plan.pools[0].max_run_duration = Seconds{7 * 86'400.0};
  CHECK(finish_seconds(c.run()) == 4100);
}

TEST_CASE("a fallback pool may end the wait in the queue") {
  Case c = with_model(ProvisioningModel::flex_start_queued, 2);
  c.plan.pools.push_back(c.plan.pools[0]);
  c.plan.pools[1].name = "on-demand";
  c.plan.pools[1].provisioning_model = ProvisioningModel::standard;
  c.plan.pools[1].fallback_for = 0;
  c.plan.pools[0].patience = Seconds{1200};
  CHECK(finish_seconds(c.run()) == 1200 + 100 + 1000);
}

TEST_CASE("best-effort-atomic-scale-up gives all nodes back when one does not come") {
  Case c = with_model(ProvisioningModel::best_effort_atomic, 2);
  Fact<Seconds>& delay = c.plan.pools[0].provisioning;
  delay = Fact<Seconds>{Seconds{800}};
  delay.low = Seconds{500};
  delay.high = Seconds{1280};
  const auto first_request = [&] {  // ready times of the two nodes, were they not given up
    std::vector<double> times;
    for (std::uint32_t slot = 0; slot < 2; ++slot) {
      RandomStream stream{c.options.seed, 0, kProvisioning, node_entity("workers", slot)};
      times.push_back(to_seconds(DelayLaw{delay}.draw(stream)).count());
    }
    std::ranges::sort(times);
    return times;
  };
  while (!(first_request()[0] < 800 && first_request()[1] > 1000)) ++c.options.seed;
  const LifeResult life = c.run();
  std::vector<double> ends;
  for (const Span& span : life.timeline.spans)
    if (span.category == "node" && seconds(span.end) <= 900) ends.push_back(seconds(span.end));
  // The first is ready early and kept for the job until 900, when the request is withdrawn.
  CHECK(std::ranges::count(ends, 900.0) == 2);
  for (const Span& span : life.timeline.spans)
    if (span.pool == 0) CHECK((seconds(span.end) <= 900 || seconds(span.begin) >= 900 + 300));
  // What came is billed from its request on.
  c.options.horizon = Seconds{901};
  CHECK(provisioning_node_seconds(c.run()) == 900);
  // Without a request for all, the node that came stays.
  c.plan.pools[0].provisioning_model = ProvisioningModel::standard;
  c.options.horizon = Seconds{1100};
  CHECK(provisioning_node_seconds(c.run()) == 1100);
}

TEST_CASE("a slice of several hosts is there when its slowest host is") {
  Case c = round_case(1, 4);
  Fact<Seconds>& delay = c.plan.pools[0].provisioning;
  delay.low = Seconds{50};
  delay.high = Seconds{200};
  c.plan.pools[0].slice = TpuSlice{.name = "v4-32", .chips = 4, .hosts = 4};
  for (c.options.seed = 1; c.options.seed < 10; ++c.options.seed) {
    RandomStream stream{c.options.seed, 0, kProvisioning, node_entity("workers", 0)};
    SimDuration slowest{};
    for (int host = 0; host < 4; ++host) slowest = std::max(slowest, DelayLaw{delay}.draw(stream));
    CHECK(finish_seconds(c.run()) == Approx(to_seconds(slowest).count() + 1000).epsilon(1e-9));
  }
}

TEST_CASE("an autoscaled slice comes and goes as a whole, or not at all") {
  Case c = round_case(1, 4);
  autoscale(c, 0, 0, 1);
  c.plan.pools[0].slice = TpuSlice{.name = "v4-32", .chips = 4, .hosts = 4};
  CHECK(provisioning_node_seconds(c.run()) == 1700);
  // One late host of four ends the request for all of them.
  c.plan.pools[0].provisioning = Fact<Seconds>{Seconds{901}};
  c.options.horizon = Seconds{5000};
  const LifeResult life = c.run();
  CHECK_FALSE(life.finished);
  CHECK(life.bill == NanoUsd{});
}
