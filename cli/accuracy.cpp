#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <filesystem>
#include <optional>

#include "cli/command.h"
#include "cli/errors.h"
#include "cli/load/load.h"
#include "cli/options/shared.h"
#include "cli/options/values.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "report/accuracy/accuracy.h"
#include "report/accuracy/efficiencies_csv.h"
#include "report/accuracy/reliability.h"
#include "sim/accuracy/evidence/files.h"
#include "sim/accuracy/scoring/accuracy_modes.h"
#include "sim/accuracy/scoring/evidence_scores.h"
#include "sim/accuracy/scoring/evidence_tuning.h"
#include "sim/accuracy/scoring/fit/fit.h"
#include "sim/accuracy/scoring/reliability_runs.h"
#include "sim/accuracy/tables/tables.h"
#include "sim/base/mapped_file.h"
#include "sim/base/unit_text.h"

namespace reckon::cli {
namespace {

struct AccuracyOptions : Files, AnswerFormat, CatalogChoice {
  std::optional<TableKind> from;  // nullopt: told by the header
  std::optional<HoldOut> cross_validate;
  int warm = 0, worst = 0;  // 0: not asked for
  bool regret = false, step_model = false;
  std::string trust, source;      // letters such as "AB", a source's name; "": all
  std::string plot, refit, tune;  // files to write; "": none

  std::vector<Option> declared();
};

/// "A", "A,B": the letters.
Read trust_letters(std::string& to) {
  return [&to](const std::string& name, const std::string& text) {
    for (const char c : text)
      if (c == 'A' || c == 'B' || c == 'C')
        to += c;
      else if (c != ',')
        throw UsageError(fmt::format("--{} takes A, B and C, such as A,B; not '{}'", name, text));
  };
}

std::vector<Option> AccuracyOptions::declared() {
  return {format_option(),
          {{"from", "KIND",
            "table format: normalised, vtrain, collectives, collective_profiles, time_to_train, "
            "run_costs or energy_and_convergence (detected from the header)"},
           word(from)},
          {{"cross-validate", words<HoldOut>(),
            "refit the efficiencies without each one in turn, and predict it"},
           word(cross_validate)},
          {{"warm", "K", "also score predictions after K measured runs of each group"},
           whole(warm, 1, 1'000'000)},
          {{"regret", "", "slowdown of the layout that reckon would choose against the fastest"},
           given(regret)},
          {{"trust", "A[,B]", "score only rows of this trust"}, trust_letters(trust)},
          {{"source", "NAME", "score only rows of this source"}, text(source)},
          worst_option(worst),
          plot_option(plot),
          {{"refit", "FILE.csv", "efficiencies.csv to refit to all sources and overwrite"},
           text(refit)},
          catalog_option(),
          {{"step-model", "", "predict with the step model alone, without evidence"},
           given(step_model)},
          {{"tune", "FILE.csv", "kernel file to tune on held-out runs"}, text(tune)}};
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
Expected<Input> read_input(const AccuracyOptions& options, const PublishedFilter& filter,
                           const std::deque<MappedFile>& files, TextPool& texts) {
  Input input;
  const auto keep = [&](const PublishedRun& r) { input.runs.push_back(r); };
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string& name = options.files[i];
    const std::string_view bytes = files[i].bytes();
    const bool vtrain = options.from ? *options.from == TableKind::vtrain : is_vtrain_table(bytes);
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

/// What the rows are. Of one file it is told by its header where --from does not say it; several
/// are runs, whose files each may be vTrain's.
TableKind kind_of(const AccuracyOptions& options, std::string_view first) {
  if (options.from) return *options.from;
  const TableKind kind = options.files.size() > 1 ? TableKind::runs : table_kind(first);
  return kind == TableKind::vtrain ? TableKind::runs : kind;
}

void refuse_modes(TableKind kind, const AccuracyOptions& o) {
  const bool runs = kind == TableKind::runs || kind == TableKind::vtrain;
  const bool of_times = kind == TableKind::time_to_train;
  if (!runs && o.files.size() > 1)
    throw UsageError(fmt::format("--from {} takes one file", to_text(kind)));
  if (of_times && (o.cross_validate || o.regret))
    throw UsageError("--from time_to_train is scored cold and warm only");
  if (!runs && !of_times && (o.cross_validate || o.warm > 0 || o.regret))
    throw UsageError(fmt::format("--from {} is scored cold only", to_text(kind)));
}

int tell(const AccuracyReport& result, const AccuracyOptions& options) {
  if (!options.plot.empty()) write_file(options.plot, accuracy_svg(result));
  print(options.format == OutputFormat::json ? accuracy_json(result, options.worst)
                                             : accuracy_table(result, options.worst));
  return result.runs.empty() ? kInputIsWrong : kDone;
}

int collectives(const AccuracyOptions& options, std::string_view bytes, const Catalog& catalog) {
  TextPool texts;
  auto runs = checked(score_collectives(options.files.front(), bytes, texts, catalog));
  report(runs.counts.problems);
  AccuracyReport result = make_accuracy_report(runs.counts, std::move(runs.scored));
  result.from = "collectives";
  result.unit = "GB/s of bus bandwidth";
  return tell(result, options);
}

struct TableReader {
  TableKind kind;
  std::string_view unit;
  Expected<ScoredTable> (*score)(std::string_view, std::string_view, TextPool&, const Catalog&);
};
constexpr std::array<TableReader, 3> kTables{
    {{TableKind::collective_profiles, "GB/s of bus bandwidth", score_collective_profiles},
     {TableKind::run_costs, "hours, and US dollars", score_run_costs},
     {TableKind::energy_and_convergence, "epochs, seconds an epoch, watts",
      score_energy_and_convergence}}};

int table(const TableReader& reader, const AccuracyOptions& options, std::string_view bytes,
          const Catalog& catalog) {
  TextPool texts;
  auto scored = checked(reader.score(options.files.front(), bytes, texts, catalog));
  report(scored.counts.problems);
  AccuracyReport result = make_accuracy_report(scored.counts, std::move(scored.scored));
  result.from = to_text(reader.kind);
  result.unit = reader.unit;
  result.others.clear();
  return tell(result, options);
}

/// Our catalogs' evidence, and that of the user's layers over them.
EvidenceFiles evidence_of(const AccuracyOptions& options) {
  EvidenceFiles files;
  if (options.step_model) return files;
  checked(files.add_catalog(default_catalog_directory()));
  for (const auto& layer : options.catalogs) checked(files.add_catalog(layer));
  return files;
}

int time_to_train(const AccuracyOptions& options, std::string_view bytes, const Catalog& catalog) {
  TextPool texts;
  auto runs = checked(score_time_to_train(options.files.front(), bytes,
                                          {options.trust, options.source}, texts, catalog));
  report(runs.counts.problems);
  const EvidenceFiles evidence = evidence_of(options);
  if (const auto& kernel = evidence.kernel())
    add_evidence_to_times(runs.scored.runs, evidence.runs(), catalog, *kernel);
  AccuracyReport result = make_accuracy_report(runs.counts, std::move(runs.scored));
  result.from = to_text(TableKind::time_to_train);
  result.unit = "minutes to the target";
  result.others.clear();  // how long runs alike took is a matter of the samples that each needed
  if (options.warm > 0) result.warm.push_back(evaluate_warm(result.runs, options.warm, catalog));
  return tell(result, options);
}

/// Told by its header: interruptions and goodput of whole runs.
int reliability(const AccuracyOptions& options, std::string_view bytes, const Catalog& catalog) {
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

int accuracy(const AccuracyOptions& options) {
  std::deque<MappedFile> files;  // whose elements cannot be moved
  for (const std::string& name : options.files) files.emplace_back(name);
  const std::string_view first = files.front().bytes();
  const TableKind kind = kind_of(options, first);
  refuse_modes(kind, options);
  const auto catalog = checked(load_catalogs(options));
  for (const TableReader& reader : kTables)
    if (kind == reader.kind) return table(reader, options, first, catalog);
  if (is_reliability_table(first)) return reliability(options, first, catalog);
  if (kind == TableKind::collectives) return collectives(options, first, catalog);
  if (kind == TableKind::time_to_train) return time_to_train(options, first, catalog);
  TextPool texts;
  const PublishedFilter wanted{options.trust, options.source};
  auto input = checked(
      read_input(options, options.cross_validate ? PublishedFilter{} : wanted, files, texts));
  report(input.counts.problems);
  if (!options.tune.empty()) {
    tune(options.tune, input.runs, catalog);
    return kDone;
  }
  if (!options.refit.empty()) {
    refit(options.refit, input.runs, catalog);
    return kDone;
  }
  const EvidenceFiles evidence = evidence_of(options);
  ScoredRuns scored = score(input.runs, catalog, options.cross_validate, evidence, wanted);
  if (options.cross_validate) keep_wanted(scored, wanted, input.counts);
  AccuracyReport result = make_accuracy_report(input.counts, std::move(scored));
  result.from = to_text(kind);
  result.cross_validated = options.cross_validate.has_value();
  if (options.warm > 0) result.warm.push_back(evaluate_warm(result.runs, options.warm, catalog));
  if (options.regret) result.regret = regret_of(result.runs);
  return tell(result, options);
}

}  // namespace

std::vector<OptionText> accuracy_options() { return shown_options<AccuracyOptions>(); }

int run_accuracy(const Command& self, std::span<const std::string> arguments) {
  const auto options = parse<AccuracyOptions>(self, arguments);
  return options ? accuracy(*options) : kDone;
}

}  // namespace reckon::cli
