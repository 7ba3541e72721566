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
#include "report/accuracy.h"
#include "report/efficiencies_csv.h"
#include "sim/accuracy/evidence_files.h"
#include "sim/base/mapped_file.h"
#include "sim/base/unit_text.h"
#include "sim/calibration/accuracy_modes.h"
#include "sim/calibration/evidence_scores.h"
#include "sim/calibration/fit.h"

namespace reckon::cli {
namespace {

constexpr std::array<std::string_view, 13> kAccuracyNames{
    "format", "from", "cross-validate", "warm",    "regret",      "trust", "source",
    "worst",  "plot", "refit",          "catalog", "by-evidence", "help"};

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
  std::erase_if(scored.runs, [&](const ScoredRun& r) {
    return (!filter.trust.empty() && filter.trust.find(r.at.trust) == std::string::npos) ||
           (!filter.source.empty() && r.at.source != filter.source);
  });
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
Modes modes_of(const Options& options) {
  const std::vector<std::string> kinds{"normalised", "vtrain", "collectives", "time_to_train"};
  Modes m;
  m.from = word_of(options, "from", kinds);
  if (m.from.empty()) m.from = kinds.front();
  m.worst = count_answer(options, "worst");
  m.warm = count_answer(options, "warm");
  m.cross_validate = hold_out_of(options);
  m.regret = !options.answer("regret").empty();
  const bool one_file = m.from == "collectives" || m.from == "time_to_train";
  if (one_file && options.files.size() > 1)
    throw UsageError(fmt::format("--from {} takes one file", m.from));
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
  const auto stacks = share_stacks(rows, catalog);
  set_spreads(rows, score_cross_validated(fit, runs, catalog).runs, catalog);
  write_file(file, efficiencies_csv(read_text(file), rows, fit.inputs_digest()));
  const std::string beside = (std::filesystem::path(file).parent_path() / "stacks.csv").string();
  write_file(beside, stacks_csv(stacks));
}

/// Our catalogs' evidence, and that of the user's layers over them.
EvidenceFiles evidence_of(const Options& options) {
  EvidenceFiles files;
  if (options.answer("by-evidence").empty()) return files;
  checked(files.add_catalog(default_catalog_directory()));
  for (const auto& layer : options.catalogs) checked(files.add_catalog(layer));
  return files;
}

ScoredRuns score(std::span<const PublishedRun> runs, const Catalog& catalog,
                 std::optional<HoldOut> by, const EvidenceFiles& evidence) {
  const auto& kernel = evidence.kernel();
  if (by) return score_cross_validated(runs, catalog, *by, kernel ? &*kernel : nullptr);
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
  const Modes modes = modes_of(options);
  const auto catalog = checked(load_catalogs(options));
  std::deque<MappedFile> files;  // whose elements cannot be moved
  for (const std::string& name : options.files) files.emplace_back(name);
  const std::string_view first = files.front().bytes();
  if (modes.from == "collectives") return collectives(options, first, catalog, modes.worst);
  if (modes.from == "time_to_train") return time_to_train(options, first, catalog, modes);
  TextPool texts;
  const PublishedFilter wanted{trust_of(options), options.answer("source")};
  auto input =
      checked(read_input(options, modes.cross_validate ? PublishedFilter{} : wanted, files, texts));
  report(input.counts.problems);
  const std::string refitted = options.answer("refit");
  if (!refitted.empty()) {
    refit(refitted, input.runs, catalog);
    return kDone;
  }
  const EvidenceFiles evidence = evidence_of(options);
  ScoredRuns scored = score(input.runs, catalog, modes.cross_validate, evidence);
  if (modes.cross_validate) keep_wanted(scored, wanted, input.counts);
  AccuracyReport result = make_accuracy_report(input.counts, std::move(scored));
  result.from = modes.from;
  result.cross_validated = modes.cross_validate.has_value();
  if (modes.warm > 0) result.warm.push_back(evaluate_warm(result.runs, modes.warm, catalog));
  if (modes.regret) result.regret = regret_of(result.runs);
  return tell(result, options, modes.worst);
}

}  // namespace reckon::cli
