#include <catch2/catch.hpp>

#include "sim/forecast/forecast.h"
#include "support/scenario_text.h"

// The shipped scenarios of restarts: one in which going on with fewer nodes wins, one in which a
// spare node loses, and what makes the spare win.
using namespace reckon;

namespace {

Forecast answer(const std::string& name, const std::vector<std::string>& overrides) {
  const auto plan = test::shipped_plan(name, overrides);
  if (!plan) FAIL(format(plan.error()));
  ForecastOptions options;
  options.replications = 64;
  options.assumption_effects = false;
  options.threads = 2;
  const auto network = make_default_network();
  const Forecast f = make_forecast(*plan, *network, options);
  UNSCOPED_INFO(name << ' ' << (overrides.empty() ? "" : overrides.front()) << ": "
                     << f.time_seconds.mean / 3600 << " h, " << f.cost_usd.value().mean << " USD");
  return f;
}

}  // namespace

TEST_CASE("on spot nodes with shortages the elastic job is done sooner and costs less") {
  const Forecast elastic = answer("elastic-spot", {});
  const Forecast full = answer("elastic-spot", {"workload.restart={kind: full}"});
  const Forecast in_place = answer("elastic-spot", {"workload.restart={kind: in_place}"});
  CHECK(elastic.time_seconds.mean < in_place.time_seconds.mean);
  CHECK(in_place.time_seconds.mean < full.time_seconds.mean);
  CHECK(elastic.cost_usd->mean < full.cost_usd->mean);
}

TEST_CASE("two nodes fail too seldom for a third that stands by, a hundred do not") {
  const std::vector<std::string> without{"workload.restart={kind: full}",
                                         "cluster.pools.h100.nodes=2"};
  const Forecast spare = answer("warm-spare-small", {});
  const Forecast full = answer("warm-spare-small", without);
  CHECK(spare.cost_usd->mean > 1.3 * full.cost_usd->mean);
  CHECK(spare.time_seconds.mean < full.time_seconds.mean);
  CHECK(spare.cost_breakdown_usd[std::size_t(CostPart::spares)] > 0.25 * full.cost_usd->mean);

  const std::vector<std::string> large{"workload.train={tokens: 600B}",
                                       "workload.global_batch=1024",
                                       "workload.dataset={samples: 100M, bytes_per_sample: 16kB}"};
  std::vector<std::string> with{large}, plain{large};
  with.insert(with.begin(), "cluster.pools.h100.nodes=129");
  plain.insert(plain.begin(), "cluster.pools.h100.nodes=128");
  plain.emplace_back("workload.restart={kind: full}");
  const Forecast large_spare = answer("warm-spare-small", with);
  const Forecast large_full = answer("warm-spare-small", plain);
  CHECK(large_spare.time_seconds.mean < large_full.time_seconds.mean);
  CHECK(large_spare.cost_usd->mean < large_full.cost_usd->mean);
}
