#include "report/compare.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/command.h"
#include "cli/load/load.h"
#include "cli/options/shared.h"
#include "cli/options/values.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/sweep.h"
#include "report/html/html.h"
#include "report/spot.h"

namespace reckon::cli {
namespace {

struct CompareOptions : Files,
                        AnswerFormat,
                        Sweeps,
                        ScenarioChanges,
                        Sampling,
                        NetworkChoice,
                        CatalogChoice {
  bool spot = false;
  std::string html;  // a file to write; "": none

  std::vector<Option> declared() {
    return {
        format_option(),
        {{"spot", "", "compare spot with on demand, and print when spot is cheaper"}, given(spot)},
        sweep_option(),
        set_option(),
        layer_option(),
        seed_option(),
        replications_option(),
        html_option(html),
        engine_option(),
        catalog_option(),
        calibration_option(),
        evidence_option(),
        without_evidence_option(),
        threads_option()};
  }
  void check() const {
    if (spot && (files.size() != 1 || !sweeps.empty() || !html.empty()))
      throw UsageError("--spot takes one scenario, and neither --sweep nor --html");
  }
};

struct Candidate {
  std::string name;
  Plan plan;
  bool serves = false;
};

/// Every file at every point of the sweep, named by what tells them apart.
Expected<std::vector<Candidate>> candidates_of(const CompareOptions& options,
                                               const LoadedCatalog& catalog) {
  const std::vector<SweepAxis> axes = sweep_axes(options);
  std::vector<Candidate> candidates;
  std::vector<std::string> files;
  Diagnostics errors;
  for (const std::string& file : options.files)
    for (const auto& values : sweep_points(axes)) {
      auto loaded = load_plan(file, at_point(options, axes, values), catalog);
      if (!loaded) {
        errors.insert(errors.end(), loaded.error().begin(), loaded.error().end());
        continue;
      }
      std::string name = loaded->plan.name;
      for (std::size_t a = 0; a < axes.size(); ++a)
        name += fmt::format("{}{}={}", a == 0 ? "  " : ", ", axes[a].path, values[a]);
      candidates.push_back(
          {std::move(name), std::move(loaded->plan), loaded->file.scenario.serving.has_value()});
      files.push_back(file);
    }
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  const std::vector<Candidate> named = candidates;
  for (std::size_t k = 0; k < candidates.size(); ++k)
    if (std::count_if(named.begin(), named.end(),
                      [&](const Candidate& c) { return c.name == named[k].name; }) > 1)
      candidates[k].name += fmt::format("  ({})", files[k]);
  return candidates;
}

/// One seed and one number of replications for all: what the command line says, else the first
/// file's seed and the most replications that any file asks for.
CandidateComparison compare_all(const std::vector<Candidate>& candidates,
                                const CompareOptions& options, const NetworkModel& network) {
  int most = 0;
  for (const Candidate& c : candidates) most = std::max(most, c.plan.replications);
  ForecastOptions how = forecast_options(options);
  how.seed = options.seed.value_or(candidates.front().plan.seed);
  how.replications = options.replications.value_or(most);
  ProgressLine line;
  const auto progress = line.callback();
  std::vector<Forecast> forecasts;
  for (const Candidate& c : candidates) {
    forecasts.push_back(make_forecast(c.plan, network, how));
    if (progress) progress(double(forecasts.size()) / double(candidates.size()));
  }
  return compare(std::move(forecasts));
}

/// The file's pools that are bought on spot, or that could be: those that compute.
std::vector<std::string> spot_pools(const LoadedPlan& planned) {
  std::vector<std::string> spot, could_be;
  for (const PoolSpec& written : planned.file.scenario.cluster.pools) {
    const auto pool = std::ranges::find(planned.plan.pools, written.name, &PlannedPool::name);
    if (pool == planned.plan.pools.end()) continue;
    if (pool->pricing == CapacityType::spot) spot.push_back(pool->name);
    if (computes(planned.plan, *pool) && pool->pricing == CapacityType::on_demand &&
        !pool->fallback_for)
      could_be.push_back(pool->name);
  }
  return spot.empty() ? could_be : spot;
}

/// `--spot`: one scenario, its nodes bought in two ways.
int compare_bought(const CompareOptions& options) {
  const auto catalog = checked(load_catalogs(options));
  const std::string& file = options.files.front();
  const LoadedPlan planned = checked(load_plan(file, options, catalog));
  const std::vector<std::string> pools = spot_pools(planned);
  if (pools.empty())
    throw UsageError("--spot needs a pool of workers with pricing: spot or on_demand");
  const auto bought = [&](const char* pricing) {
    ScenarioChanges other = options;
    for (const std::string& pool : pools)
      other.overrides.push_back(fmt::format("cluster.pools.{}.pricing={}", pool, pricing));
    return checked(load_plan(file, other, catalog)).plan;
  };
  const Plan on_demand = bought("on_demand"), spot = bought("spot");
  const auto network = make_network(options);
  const SpotComparison comparison =
      compare_spot(on_demand, spot, *network, forecast_options(options));
  print(options.format == OutputFormat::json ? spot_json(comparison)
                                             : spot_table(comparison, spot));
  return kDone;
}

}  // namespace

std::vector<OptionText> compare_options() { return shown_options<CompareOptions>(); }

int run_compare(const Command& self, std::span<const std::string> arguments) {
  const auto options = parse<CompareOptions>(self, arguments);
  if (!options) return kDone;
  if (options->spot) return compare_bought(*options);
  if (!options->html.empty()) require_html();
  const auto catalog = checked(load_catalogs(*options));
  const auto candidates = checked(candidates_of(*options, catalog));
  if (candidates.size() < 2)
    throw UsageError("compare needs two plans: two files, or one with --sweep");
  if (std::any_of(candidates.begin(), candidates.end(),
                  [](const Candidate& c) { return c.serves; }))
    print_error("note: trainings are compared; what is served beside them is not\n");
  std::vector<std::string> names;
  for (const Candidate& c : candidates) names.push_back(c.name);
  const auto network = make_network(*options);
  const CandidateComparison comparison = compare_all(candidates, *options, *network);
  print(options->format == OutputFormat::json ? compare_json(comparison, names)
                                              : compare_table(comparison, names));
  if (!options->html.empty())
    write_file(options->html, compare_html(comparison, names, html_assets()));
  return kDone;
}

}  // namespace reckon::cli
