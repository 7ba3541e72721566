#include <fmt/core.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "lives.h"

using namespace reckon;
using namespace reckon::test;
using namespace std::chrono_literals;

namespace {

Case spot() {
  Case c = round_case(10);
  c.plan.pools[0].pricing = CapacityType::spot;
  c.plan.pools[0].provisioning = Fact<Seconds>{210s, 180s, 240s, SourceId::user};
  c.plan.reclaim.law =
      BathtubReclaim{.a = 0.47, .tau1 = 1h, .tau2 = 0.8 * 1h, .b = 24h, .limit = 24h};
  c.plan.reclaim.notice = 30s;
  c.pace.steps = 500'000;
  checkpoints(c, 20min, 45s, 60s);
  return c;
}

Case autoscaled() {
  Case c = spot();
  autoscale(c, 3, 0, 12);
  c.plan.reclaim.law = ExponentialReclaim{20h};
  c.plan.pools[0].provisioning = Fact<Seconds>{600s, 300s, 1200s, SourceId::user};
  return c;
}

Case everything() {
  Case c = autoscaled();
  c.plan.pools.push_back(round_pool("servers", Role::parameter_server, 2, 0));
  c.plan.jobs[0].strategy.servers = ParameterServers{.count = 2, .synchronous = false};
  for (int live = 1; live <= 10; ++live)
    c.pace.step_by_workers[std::size_t(live)] = Seconds{10.0 / live};
  c.plan.maintenance = {
      .on = true, .every = Fact<Seconds>{24h * 10}, .notice = 1h, .duration = Fact<Seconds>{30min}};
  c.plan.failures = {
      .on = true, .mtbf_per_accelerator = Fact<Seconds>{500h}, .repair = Fact<Seconds>{16min}};
  return c;
}

std::string line(const std::string& name, Case c, std::uint32_t replication) {
  c.options.replication = replication;
  const LifeResult life = c.run();
  return fmt::format("{} {} events={} digest={:016x} finish_ns={} bill_nano_usd={}\n", name,
                     replication, life.events, life.digest, life.finish.time_since_epoch().count(),
                     life.bill.n);
}

}  // namespace

TEST_CASE("lives are what they were, digit for digit (UPDATE_GOLDEN=1 accepts a change)") {
  std::string text;
  for (std::uint32_t k = 0; k < 3; ++k) {
    text += line("undisturbed", round_case(4, 2), k) + line("spot", spot(), k) +
            line("autoscaled", autoscaled(), k) + line("everything", everything(), k);
  }
  const std::string file = RECKON_SOURCE_DIR "/tests/sim/cluster/lives.golden";
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(file) << text;
  std::stringstream golden;
  golden << std::ifstream(file).rdbuf();
  CHECK(golden.str() == text);
}

TEST_CASE("the same seed gives the same life, another seed or replication another one") {
  Case c = spot();
  const std::uint64_t digest = c.run().digest;
  CHECK(c.run().digest == digest);
  c.options.replication = 1;
  CHECK(c.run().digest != digest);
  c.options.replication = 0;
  c.options.seed = 2;
  CHECK(c.run().digest != digest);
}
