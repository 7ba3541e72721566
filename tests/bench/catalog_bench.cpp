#include <benchmark/benchmark.h>

#include <array>

#include "sim/catalog/catalog.h"
#include "sim/catalog/catalog_lookup.h"

// Every command loads the catalogs first: this must stay under 30 ms.
namespace {

using namespace reckon;

const std::array<std::filesystem::path, 1> kLayers{RECKON_SOURCE_DIR "/catalogs"};

void load(benchmark::State& state) {
  for (auto _ : state) {
    auto catalog = load_catalog(kLayers);
    if (!catalog) state.SkipWithError("the catalogs have mistakes");
    benchmark::DoNotOptimize(catalog);
  }
}
BENCHMARK(load)->Unit(benchmark::kMillisecond);

void price_of_a_custom_machine(benchmark::State& state) {
  const auto catalog = load_catalog(kLayers);
  const PriceQuestion question{Provider{"gcp"}, "us-central1", "", CapacityType::on_demand, false};
  for (auto _ : state) {
    auto price = find_price(*catalog, question, "custom-24-98304", Offering::Covers::machine);
    benchmark::DoNotOptimize(price);
  }
}
BENCHMARK(price_of_a_custom_machine)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
