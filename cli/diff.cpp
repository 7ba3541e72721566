#include <fmt/format.h>

#include <filesystem>

#include "cli/command.h"
#include "cli/errors.h"
#include "cli/import/bill.h"
#include "cli/load/load.h"
#include "cli/load/measurements.h"
#include "cli/options/shared.h"
#include "cli/options/values.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "executor/train/records/run_directory.h"
#include "report/run/bill.h"
#include "report/run/diff.h"

namespace reckon::cli {
namespace {

struct DiffOptions : Files, AnswerFormat, CatalogChoice {
  std::vector<std::string> bills;
  std::string tag;

  std::vector<Option> declared() {
    return {{{"bill", "FILE", "cloud bill of the run, in a format of import bill (repeatable)"},
             texts(bills),
             true},
            {{"tag", "KEY=VALUE", "bill rows to count, by tag or label (all rows)"}, text(tag)},
            format_option(),
            catalog_option()};
  }
  void check() const {
    if (files.size() != 2)
      throw UsageError("diff takes a forecast and a run: reckon diff forecast.json runs/mlp");
    if (bills.empty() && (!tag.empty() || !catalogs.empty()))
      throw UsageError("--tag and --catalog are of --bill");
  }
};

/// The forecast's ledger beside what was charged for the run, whose plan knows its machines.
BillComparison billed(const DiffOptions& options, const SaidForecast& said) {
  const auto run = load_artifact(options.files[1]);
  if (!run) throw UsageError("--bill needs the directory of the run: its plan names the machines");
  const ReadArtifact read = checked(*run);
  const auto catalog = checked(load_catalogs(options));
  Forecast ledger;
  ledger.node_hours = said.node_hours;
  ledger.cost_usd = said.cost_usd;
  ledger.cost_breakdown_usd = said.cost_breakdown_usd;
  return compare_bill(read_bills(options.bills, options.tag, catalog), read.artifact.plan, ledger);
}

/// A run is named by its directory or by its measurements.
std::filesystem::path measurements_of(const std::filesystem::path& run) {
  if (!std::filesystem::is_directory(run)) return run;
  const std::filesystem::path file = RunDirectory{run}.measurements();
  if (!std::filesystem::exists(file))
    throw UsageError(fmt::format("{} is no directory of a run: it has no {}", run.string(),
                                 file.filename().string()));
  return file;
}

std::filesystem::path readable(std::filesystem::path file) {
  if (!std::filesystem::exists(file))
    throw UsageError(fmt::format("{}: there is no such file", file.string()));
  if (std::filesystem::is_directory(file))
    throw UsageError(fmt::format("{}: a directory, not a forecast", file.string()));
  return file;
}

}  // namespace

std::vector<OptionText> diff_options() { return shown_options<DiffOptions>(); }

int run_diff(const Command& self, std::span<const std::string> arguments) {
  const auto options = parse<DiffOptions>(self, arguments);
  if (!options) return kDone;
  const std::filesystem::path run = measurements_of(options->files[1]);
  const auto forecast = parse_forecast(options->files[0], read_text(readable(options->files[0])));
  const auto measured = load_measurements(readable(run));
  Diagnostics problems;
  if (!forecast) problems = forecast.error();
  if (!measured) problems.insert(problems.end(), measured.error().begin(), measured.error().end());
  if (!problems.empty()) {
    report(problems);
    return kInputIsWrong;
  }
  const auto diff = checked(reckon::diff_run(*forecast, *measured, run.string()));
  std::optional<BillComparison> bill;
  if (!options->bills.empty()) bill = billed(*options, *forecast);
  std::string text = options->format == OutputFormat::json
                         ? diff_json(diff, bill ? &*bill : nullptr)
                         : diff_table(diff);
  if (bill && options->format == OutputFormat::table) text += "\n" + bill_table(*bill, {});
  print(text);
  return diff.within_interval() ? kDone : kAnswerIsNo;
}

}  // namespace reckon::cli
