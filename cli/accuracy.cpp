#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <filesystem>
#include <optional>

#include "cli/command.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/output.h"
#include "report/accuracy/accuracy.h"
#include "report/accuracy/efficiencies_csv.h"
#include "report/accuracy/reliability.h"
#include "sim/accuracy/evidence_files.h"
#include "sim/accuracy/scoring/accuracy_modes.h"
#include "sim/accuracy/scoring/evidence_scores.h"
#include "sim/accuracy/scoring/evidence_tuning.h"
#include "sim/accuracy/scoring/fit.h"
#include "sim/accuracy/scoring/reliability_runs.h"
#include "sim/accuracy/tables/tables.h"
#include "sim/base/mapped_file.h"
#include "sim/base/unit_text.h"

namespace reckon::cli {
namespace {

constexpr std::array<std::string_view, 14> kAccuracyNames{
    "format", "from", "cross-validate", "warm",    "regret",     "trust", "source",
    "worst",  "plot", "refit",          "catalog", "step-model", "tune",  "help"};

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

/// Each by its own lines.
void add(PublishedCounts& all, PublishedCounts of_file) {
  all.rows += of_file.rows;
  all.filtered_out += of_file.filtered_out;
  all.skipped.add(of_file.skipped);
  all.problems.insert(all.problems.end(), of_file.problems.begin(), of_file.problems.end());
}

/// vTrain's table is told by its header where --from does not say. The texts of `files` stay.
Expected<Input> read_input(const Options& options, const PublishedFilter& filter,
                           const std::deque<MappedFile>& files, TextPool& texts) {
  Input input;
  const auto keep = [&](const PublishedRun& r) { input.runs.push_back(r); };
  const std::string from = options.answer("from");
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string& name = options.files[i];
    const std::string_view bytes = files[i].bytes();
    const bool vtrain = from == "vtrain" || (from.empty() && is_vtrain_table(bytes));
    auto counts = vtrain ? read_vtrain_runs(name, bytes, texts, keep)
                         : read_published_runs(name, bytes, filter, texts, keep);
    if (!counts) return tl::unexpected(std::move(counts.error()));
    add(input.counts, std::move(*counts));
  }
  return input;
}

/// What is fitted without a fold is predicted from all others: a filter says what is scored.
void keep_wanted(ScoredRuns& scored, const PublishedFilter& filter, PublishedCounts& counts) {
  const std::size_t before = scored.runs.size();
  std::erase_if(scored.runs, [&](const ScoredRun& r) { return !is_wanted(r.at, filter); });
  counts.filtered_out += static_cast<std::int64_t>(before - scored.runs.size());
}

struct Modes {
  std::string from;
  int worst = 0, warm = 0;
  std::optional<HoldOut> cross_validate;
  bool regret = false;
};
std::optional<HoldOut> hold_out_of(const Options& options) {
  const std::vector<std::string> folds{"source", "publisher", "model"};
  const std::string word = word_of(options, "cross-validate", folds);
  if (word.empty()) return std::nullopt;
  return word == "source"      ? HoldOut::source
         : word == "publisher" ? HoldOut::publisher
                               : HoldOut::model;
}

/// Words of --from, in the order of TableKind.
const std::vector<std::string>& kind_names() {
  static const std::vector<std::string> names{
      "normalised",    "vtrain",    "collectives",           "collective_profiles",
      "time_to_train", "run_costs", "energy_and_convergence"};
  return names;
}

/// Of one file the kind is told by its header where --from does not say it; several are runs.
std::string kind_of(const Options& options, std::string_view first) {
  const std::string from = word_of(options, "from", kind_names());
  if (!from.empty()) return from;
  const TableKind kind = options.files.size() > 1 ? TableKind::runs : table_kind(first);
  return kind == TableKind::vtrain ? "normalised" : kind_names().at(std::size_t(kind));
}

Modes modes_of(const Options& options, std::string_view first) {
  Modes m;
  m.from = kind_of(options, first);
  m.worst = count_answer(options, "worst");
  m.warm = count_answer(options, "warm");
  m.cross_validate = hold_out_of(options);
  m.regret = !options.answer("regret").empty();
  const bool runs = m.from == "normalised" || m.from == "vtrain";
  if (!runs && options.files.size() > 1)
    throw UsageError(fmt::format("--from {} takes one file", m.from));
  if (m.from == "time_to_train" && (m.cross_validate || m.regret))
    throw UsageError("--from time_to_train is scored cold and warm only");
  if (!runs && m.from != "time_to_train" && (m.cross_validate || m.warm > 0 || m.regret))
    throw UsageError(fmt::format("--from {} is scored cold only", m.from));
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

struct TableReader {
  std::string_view from, unit;
  Expected<ScoredTable> (*score)(std::string_view, std::string_view, TextPool&, const Catalog&);
};
constexpr std::array<TableReader, 3> kTables{
    {{"collective_profiles", "GB/s of bus bandwidth", score_collective_profiles},
     {"run_costs", "hours, and US dollars", score_run_costs},
     {"energy_and_convergence", "epochs, seconds an epoch, watts", score_energy_and_convergence}}};

int table(const TableReader& reader, const Options& options, std::string_view bytes,
          const Catalog& catalog, int worst) {
  TextPool texts;
  auto scored = checked(reader.score(options.files.front(), bytes, texts, catalog));
  report(scored.counts.problems);
  AccuracyReport result = make_accuracy_report(scored.counts, std::move(scored.scored));
  result.from = reader.from;
  result.unit = reader.unit;
  result.others.clear();
  return tell(result, options, worst);
}

/// Our catalogs' evidence, and that of the user's layers over them.
EvidenceFiles evidence_of(const Options& options) {
  EvidenceFiles files;
  if (!options.answer("step-model").empty()) return files;
  checked(files.add_catalog(default_catalog_directory()));
  for (const auto& layer : options.catalogs) checked(files.add_catalog(layer));
  return files;
}

int time_to_train(const Options& options, std::string_view bytes, const Catalog& catalog,
                  const Modes& modes) {
  TextPool texts;
  auto runs = checked(score_time_to_train(
      options.files.front(), bytes, {trust_of(options), options.answer("source")}, texts, catalog));
  report(runs.counts.problems);
  const EvidenceFiles evidence = evidence_of(options);
  if (const auto& kernel = evidence.kernel())
    add_evidence_to_times(runs.scored.runs, evidence.runs(), catalog, *kernel);
  AccuracyReport result = make_accuracy_report(runs.counts, std::move(runs.scored));
  result.from = modes.from;
  result.unit = "minutes to the target";
  result.others.clear();  // how long runs alike took is a matter of the samples that each needed
  if (modes.warm > 0) result.warm.push_back(evaluate_warm(result.runs, modes.warm, catalog));
  return tell(result, options, modes.worst);
}

/// Told by its header: interruptions and goodput of whole runs.
int reliability(const Options& options, std::string_view bytes, const Catalog& catalog) {
  if (options.files.size() > 1)
    throw UsageError("interruptions of runs are scored one file at a time");
  const auto scores = checked(score_reliability(options.files.front(), bytes, catalog));
  report(scores.counts.problems);
  print(options.format == OutputFormat::json ? reliability_json(scores)
                                             : reliability_table(scores));
  return scores.runs.empty() ? kInputIsWrong : kDone;
}

void refit(const std::string& file, std::span<const PublishedRun> runs, const Catalog& catalog) {
  const EfficiencyFit fit(runs, catalog);
  auto rows = fit.rows();
  const auto stacks = share_stacks(rows, catalog);
  set_spreads(rows, score_cross_validated(fit, runs, catalog).runs, catalog);
  write_file(file, efficiencies_csv(read_text(file), rows, fit.inputs_digest()));
  const std::string beside = (std::filesystem::path(file).parent_path() / "stacks.csv").string();
  write_file(beside, stacks_csv(stacks));
}

void tune(const std::string& file, std::span<const PublishedRun> runs, const Catalog& catalog) {
  constexpr int kRounds = 20;
  const EvidenceKernel start = checked(read_evidence_kernel(file, read_text(file)));
  const auto tell = [](const std::string& gain) { print(gain + "\n"); };
  write_file(file, evidence_kernel_csv(tune_evidence(runs, catalog, start, kRounds, tell)));
}

ScoredRuns score(std::span<const PublishedRun> runs, const Catalog& catalog,
                 std::optional<HoldOut> by, const EvidenceFiles& evidence,
                 const PublishedFilter& wanted) {
  const auto& kernel = evidence.kernel();
  if (by) return score_cross_validated(runs, catalog, *by, kernel ? &*kernel : nullptr, wanted);
  ScoredRuns scored = score_cold(runs, catalog);
  if (kernel) add_evidence_of_others(scored.runs, evidence.runs(), catalog, *kernel);
  return scored;
}

}  // namespace

std::string accuracy_options() { return describe_options(kAccuracyNames); }

int run_accuracy(const Command& self, std::span<const std::string> arguments) {
  const Options options = parse_options(self, kAccuracyNames, arguments);
  if (options.help) {
    print(help_text(self));
    return kDone;
  }
  std::deque<MappedFile> files;  // whose elements cannot be moved
  for (const std::string& name : options.files) files.emplace_back(name);
  const std::string_view first = files.front().bytes();
  const Modes modes = modes_of(options, first);
  const auto catalog = checked(load_catalogs(options));
  for (const TableReader& reader : kTables)
    if (modes.from == reader.from) return table(reader, options, first, catalog, modes.worst);
  if (is_reliability_table(first)) return reliability(options, first, catalog);
  if (modes.from == "collectives") return collectives(options, first, catalog, modes.worst);
  if (modes.from == "time_to_train") return time_to_train(options, first, catalog, modes);
  TextPool texts;
  const PublishedFilter wanted{trust_of(options), options.answer("source")};
  auto input =
      checked(read_input(options, modes.cross_validate ? PublishedFilter{} : wanted, files, texts));
  report(input.counts.problems);
  const std::string tuned = options.answer("tune");
  if (!tuned.empty()) {
    tune(tuned, input.runs, catalog);
    return kDone;
  }
  const std::string refitted = options.answer("refit");
  if (!refitted.empty()) {
    refit(refitted, input.runs, catalog);
    return kDone;
  }
  const EvidenceFiles evidence = evidence_of(options);
  ScoredRuns scored = score(input.runs, catalog, modes.cross_validate, evidence, wanted);
  if (modes.cross_validate) keep_wanted(scored, wanted, input.counts);
  AccuracyReport result = make_accuracy_report(input.counts, std::move(scored));
  result.from = modes.from;
  result.cross_validated = modes.cross_validate.has_value();
  if (modes.warm > 0) result.warm.push_back(evaluate_warm(result.runs, modes.warm, catalog));
  if (modes.regret) result.regret = regret_of(result.runs);
  return tell(result, options, modes.worst);
}

}  // namespace reckon::cli
