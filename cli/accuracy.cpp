#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "cli/command.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/output.h"
#include "report/accuracy.h"
#include "report/efficiencies_csv.h"
#include "sim/base/mapped_file.h"
#include "sim/base/unit_text.h"
#include "sim/calibration/accuracy_modes.h"
#include "sim/calibration/fit.h"

namespace reckon::cli {
namespace {

constexpr std::array<std::string_view, 12> kAccuracyNames{
    "format", "from",  "cross-validate", "warm",  "regret",  "trust",
    "source", "worst", "plot",           "refit", "catalog", "help"};

/// "A", "A,B": the letters.
std::string trust_of(const Options& options) {
  std::string letters;
  for (const char c : options.answer("trust"))
    if (c == 'A' || c == 'B' || c == 'C')
      letters += c;
    else if (c != ',')
      throw UsageError(
          fmt::format("--trust takes A, B and C, such as A,B; not '{}'", options.answer("trust")));
  return letters;
}

std::string word_of(const Options& options, const std::string& name,
                    std::span<const std::string> words) {
  const std::string text = options.answer(name);
  if (text.empty() || std::find(words.begin(), words.end(), text) != words.end()) return text;
  throw UsageError(fmt::format("--{} takes {}, not '{}'{}", name, fmt::join(words, " or "), text,
                               did_you_mean(text, words)));
}

struct Input {
  PublishedCounts counts;
  std::vector<PublishedRun> runs;
};

Expected<Input> read_input(const Options& options, std::string_view bytes, TextPool& texts) {
  const std::string& name = options.files.front();
  Input input;
  const auto keep = [&](const PublishedRun& r) { input.runs.push_back(r); };
  const PublishedFilter filter{trust_of(options), options.answer("source")};
  auto counts = options.answer("from") == "vtrain"
                    ? read_vtrain_runs(name, bytes, texts, keep)
                    : read_published_runs(name, bytes, filter, texts, keep);
  if (!counts) return tl::unexpected(std::move(counts.error()));
  input.counts = std::move(*counts);
  return input;
}

struct Modes {
  std::string from;
  int worst = 0, warm = 0;
  bool cross_validate = false, regret = false;
};
Modes modes_of(const Options& options) {
  const std::vector<std::string> kinds{"normalised", "vtrain", "collectives", "time_to_train"},
      folds{"source"};
  Modes m;
  m.from = word_of(options, "from", kinds);
  if (m.from.empty()) m.from = kinds.front();
  m.worst = count_answer(options, "worst");
  m.warm = count_answer(options, "warm");
  m.cross_validate = !word_of(options, "cross-validate", folds).empty();
  m.regret = !options.answer("regret").empty();
  if (m.from == "collectives" && (m.cross_validate || m.warm > 0 || m.regret))
    throw UsageError("--from collectives is scored cold only");
  if (m.from == "time_to_train" && (m.cross_validate || m.regret))
    throw UsageError("--from time_to_train is scored cold and warm only");
  return m;
}

int tell(const AccuracyReport& result, const Options& options, int worst) {
  const std::string plot = options.answer("plot");
  if (!plot.empty()) write_file(plot, accuracy_svg(result));
  print(options.format == OutputFormat::json ? accuracy_json(result, worst)
                                             : accuracy_table(result, worst));
  return result.runs.empty() ? kInputIsWrong : kDone;
}

int collectives(const Options& options, std::string_view bytes, const Catalog& catalog, int worst) {
  TextPool texts;
  auto runs = checked(score_collectives(options.files.front(), bytes, texts, catalog));
  report(runs.counts.problems);
  AccuracyReport result = make_accuracy_report(runs.counts, std::move(runs.scored));
  result.from = "collectives";
  result.unit = "GB/s of bus bandwidth";
  return tell(result, options, worst);
}

int time_to_train(const Options& options, std::string_view bytes, const Catalog& catalog,
                  const Modes& modes) {
  TextPool texts;
  auto runs = checked(score_time_to_train(
      options.files.front(), bytes, {trust_of(options), options.answer("source")}, texts, catalog));
  report(runs.counts.problems);
  AccuracyReport result = make_accuracy_report(runs.counts, std::move(runs.scored));
  result.from = modes.from;
  result.unit = "minutes to the target";
  result.others.clear();  // how long runs alike took is a matter of the samples that each needed
  if (modes.warm > 0) result.warm.push_back(evaluate_warm(result.runs, modes.warm, catalog));
  return tell(result, options, modes.worst);
}

void refit(const std::string& file, std::span<const PublishedRun> runs, const Catalog& catalog) {
  const EfficiencyFit fit(runs, catalog);
  auto rows = fit.rows();
  const auto stacks = share_stacks(rows);
  set_spreads(rows, score_cross_validated(runs, catalog).runs, catalog);
  constexpr std::string_view kCommand = "reckon accuracy measurements.csv --refit efficiencies.csv";
  write_file(file, efficiencies_csv(read_text(file), rows, kCommand));
  const std::string beside = (std::filesystem::path(file).parent_path() / "stacks.csv").string();
  write_file(beside, stacks_csv(stacks, kCommand));
}

}  // namespace

std::string accuracy_options() { return describe_options(kAccuracyNames); }

int run_accuracy(const Command& self, std::span<const std::string> arguments) {
  const Options options = parse_options(self, kAccuracyNames, arguments);
  if (options.help) {
    print(help_text(self));
    return kDone;
  }
  if (options.files.size() > 1) throw UsageError("accuracy takes one file of measurements");
  const Modes modes = modes_of(options);
  const auto catalog = checked(load_catalogs(options));
  const MappedFile file(options.files.front());
  if (modes.from == "collectives") return collectives(options, file.bytes(), catalog, modes.worst);
  if (modes.from == "time_to_train") return time_to_train(options, file.bytes(), catalog, modes);
  TextPool texts;
  const auto input = checked(read_input(options, file.bytes(), texts));
  report(input.counts.problems);
  const std::string refitted = options.answer("refit");
  if (!refitted.empty()) {
    refit(refitted, input.runs, catalog);
    return kDone;
  }
  AccuracyReport result = make_accuracy_report(
      input.counts, modes.cross_validate ? score_cross_validated(input.runs, catalog)
                                         : score_cold(input.runs, catalog));
  result.from = modes.from;
  result.cross_validated = modes.cross_validate;
  if (modes.warm > 0) result.warm.push_back(evaluate_warm(result.runs, modes.warm, catalog));
  if (modes.regret) result.regret = regret_of(result.runs);
  return tell(result, options, modes.worst);
}

}  // namespace reckon::cli
