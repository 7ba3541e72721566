#include <array>

#include "cli/command.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/output.h"
#include "report/json.h"
#include "report/table.h"
#include "sim/forecast/forecast.h"

namespace reckon::cli {
namespace {

constexpr std::array<std::string_view, 10> kNames{"format",  "seed",  "replications", "set",
                                                  "layer",   "trace", "engine",       "catalog",
                                                  "threads", "help"};

Forecast forecast_of(const Plan& plan, const NetworkModel& network, const Options& options) {
  ProgressLine progress;
  ForecastOptions how;
  how.seed = options.seed;
  how.replications = options.replications;
  how.threads = options.threads;
  how.progress = progress.callback();
  return make_forecast(plan, network, how);
}

}  // namespace

std::string simulate_options() { return describe_options(kNames); }

int run_simulate(const Command& self, std::span<const std::string> arguments) {
  const Options options = parse_options(self, kNames, arguments);
  if (options.help) {
    print(help_text(self));
    return kDone;
  }
  if (options.files.size() > 1)
    throw UsageError("simulate takes one scenario file; for several use 'reckon check'");

  const auto catalog = load_catalogs(options);
  if (!catalog) {
    report(catalog.error());
    return kInputIsWrong;
  }
  const auto loaded = load_plan(options.files.front(), options, *catalog);
  if (!loaded) {
    report(loaded.error());
    return kInputIsWrong;
  }
  const auto network = make_network(options);
  const Forecast forecast = forecast_of(loaded->plan, *network, options);
  if (!options.trace.empty() && forecast.feasible)
    write_file(options.trace, trace_json(loaded->plan, record_replication(loaded->plan, *network,
                                                                          forecast.seed, 0)));
  print(options.format == OutputFormat::json ? forecast_json(forecast) : forecast_table(forecast));
  return kDone;
}

}  // namespace reckon::cli
