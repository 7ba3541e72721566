#include <benchmark/benchmark.h>

#include <stdexcept>

#include "sim/catalog/catalog.h"
#include "sim/forecast/replicate.h"
#include "sim/scenario/plan.h"
#include "sim/scenario/yaml/scenario_yaml.h"
#include "sim/step/network/network.h"

// The lives of a shipped scenario as a forecast lives them: every assumption drawn, one thread.
namespace {
using namespace reckon;

Plan shipped_plan(const std::string& name) {
  const std::string root = RECKON_SOURCE_DIR;
  const std::vector<std::filesystem::path> layers{root + "/catalogs"};
  const auto catalog = load_catalog(layers);
  const auto file = read_scenario(root + "/scenarios/" + name + ".yaml");
  if (!catalog || !file) throw std::runtime_error("cannot read " + name);
  auto plan = make_plan(*file, *catalog);
  if (!plan) throw std::runtime_error(format(plan.error()));
  return *std::move(plan);
}

void thousand_replications(benchmark::State& state, const std::string& name) {
  const Plan plan = shipped_plan(name);
  const auto network = make_fluid_network();
  const ForecastSetup setup = make_setup(plan, *network);
  double events = 0, lives = 0;
  for (auto _ : state) {
    Replicator replicator(setup);
    for (std::uint32_t k = 0; k < 1000; ++k) {
      events += double(replicator.run(plan.seed, k).events);
      ++lives;
    }
  }
  state.counters["events_per_life"] = events / lives;
}
BENCHMARK_CAPTURE(thousand_replications, spot_month, "spot-month")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(thousand_replications, gke_p100, "gke-p100-autoscaling")
    ->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
