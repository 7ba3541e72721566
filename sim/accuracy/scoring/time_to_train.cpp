#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/accuracy/named_csv.h"
#include "sim/accuracy/run/plan.h"
#include "sim/accuracy/scoring/accuracy.h"
#include "sim/base/unit_text.h"

// Runs to a target quality: how long they took, given how many samples they needed.
namespace reckon {
namespace {

using Failure = tl::unexpected<std::string>;

constexpr std::array<std::string_view, 11> kTimedColumns{
    "id",      "source", "accelerator",  "accelerators",
    "nodes",   "model",  "global_batch", "epochs_or_samples_to_converge",
    "minutes", "trust",  "notes"};

/// How these share their tables out is a matter of layouts, which such files do not have.
constexpr std::array<std::string_view, 2> kOfUnknownLayout{"dlrm", "dlrm_dcnv2"};
/// Results of the benchmark's closed division; which framework ran is not told.
constexpr std::string_view kStack = "unnamed-mlperf";
/// max_seq_length of the benchmark [mlcommons/training: retired_benchmarks/bert README].
constexpr std::int64_t kBertSequence = 512;

class TimedRow {
 public:
  explicit TimedRow(const NamedCsv& csv) : csv_(csv) {}
  std::string_view text(std::string_view column) const { return csv_.text(column); }
  /// 0: blank, or no number above zero.
  double number(std::string_view column) const {
    constexpr double kMost = 1e15;
    const auto value = parse_number(text(column));
    return value && *value > 0 && *value < kMost ? *value : 0;
  }
  /// What stands behind `key` in the notes, up to the next semicolon.
  std::string_view note(std::string_view key) const {
    const std::string_view notes = text("notes");
    const std::size_t begin = notes.find(key);
    if (begin == std::string_view::npos) return {};
    const std::string_view rest = notes.substr(begin + key.size());
    return rest.substr(0, rest.find(';'));
  }

  /// "seq 8192" in the notes; 0: not there.
  std::int64_t sequence_length() const {
    constexpr double kMost = 1 << 24;
    std::string_view text = note("; seq ");
    text = text.substr(0, text.find(' '));
    const auto value = parse_number(text);
    return value && *value > 0 && *value < kMost ? static_cast<std::int64_t>(*value) : 0;
  }

 private:
  const NamedCsv& csv_;
};

/// MLPerf's language models run in fp8 where the hardware has it (general knowledge: Transformer
/// Engine and what others have like it); all else in 16 bits.
std::string_view likely_precision(const RunConfiguration& run, const Catalog& catalog) {
  const Accelerator* accelerator = catalog.find_accelerator(run.accelerator);
  const bool language = run.model == "gpt" || run.model == "gpt_lora";
  const bool fp8 = accelerator != nullptr && accelerator->peak_for(Precision::fp8).has_value();
  return language && fp8 ? "fp8" : "16";
}

RunConfiguration configuration_of(const TimedRow& row, TextPool& pool, const Catalog& catalog) {
  RunConfiguration run;
  run.accelerator = pool.keep(row.text("accelerator"));
  run.accelerators = static_cast<int>(std::min(row.number("accelerators"), 1e6));
  run.nodes = static_cast<int>(std::min(row.number("nodes"), 1e6));
  if (run.nodes > 0) run.accelerators_per_node = (run.accelerators + run.nodes - 1) / run.nodes;
  run.model = pool.keep(row.text("model"));
  run.precision = "unknown";
  run.likely_precision = likely_precision(run, catalog);
  run.intra_node_link = run.recompute = "unknown";
  const bool unknown = std::ranges::find(kOfUnknownLayout, run.model) != kOfUnknownLayout.end();
  run.strategy = unknown ? "unknown" : run.accelerators == 1 ? "single" : "all_reduce";
  run.global_batch = static_cast<std::int64_t>(row.number("global_batch"));
  if (run.accelerators > 0) run.batch_per_accelerator = double(run.global_batch) / run.accelerators;
  if (run.model.starts_with("bert")) run.sequence_length = kBertSequence;
  if (run.model.starts_with("gpt")) {
    run.variant = pool.keep(row.note("variant="));
    run.sequence_length = row.sequence_length();
    run.strategy = "model_parallel";  // of the fastest layout (sim/accuracy/run/layout.h)
  }
  run.stack = kStack;
  return run;
}

/// How many samples the run needed. Epochs are of the dataset that reference runs of the model
/// read.
tl::expected<Samples, std::string> samples_of(const TimedRow& row, const RunConfiguration& run,
                                              const Catalog& catalog) {
  const double count = row.number("epochs_or_samples_to_converge");
  const std::string_view unit = row.note("unit=");
  if (count == 0) return Failure("what it took to converge is not printed");
  if (unit == "samples") return Samples{count};
  if (unit == "tokens" && run.sequence_length > 0)
    return Samples{count / double(run.sequence_length)};
  if (unit != "epochs") return Failure("what it took is counted in other units than samples");
  const auto model = model_of_run(run);
  if (!model) return Failure(model.error());
  const auto* name = std::get_if<ModelByName>(&model->spec);
  for (const ConvergencePoint& p : catalog.convergence) {
    if (name == nullptr || p.model != name->name) continue;
    return count * catalog.find_dataset(p.dataset)->samples.value;
  }
  return Failure(fmt::format("the dataset of {} is not known", run.model));
}

tl::expected<ScoredRun, std::string> score(const TimedRow& row, TextPool& pool,
                                           const Catalog& catalog, Predictor& predict) {
  ScoredRun r;
  r.at.run = configuration_of(row, pool, catalog);
  if (row.note("division=") == "open") return Failure("of the open division");
  if (r.at.run.accelerators == 0) return Failure("accelerators is not a number above zero");
  r.measured = row.number("minutes");
  if (r.measured == 0) return Failure("minutes is not a number above zero");
  const auto samples = samples_of(row, r.at.run, catalog);
  if (!samples) return Failure(samples.error());
  const Predicted& predicted = predict(r.at.run);
  if (!predicted) return Failure(predicted.error());
  constexpr double kMinute = 60;
  const auto minutes = [&](SamplesPerSecond rate) { return samples->v / rate.v / kMinute; };
  r.predicted = minutes(predicted->rate);
  r.low = minutes(predicted->high);
  r.high = minutes(predicted->low);
  r.stack_known = predicted->stack_known;
  r.memory = predicted->memory;
  r.memory_known = predicted->memory_known;
  r.device_share = predicted->device_share;
  return r;
}

}  // namespace

Expected<TimedRuns> score_time_to_train(std::string_view file_name, std::string_view bytes,
                                        const PublishedFilter& filter, TextPool& pool,
                                        const Catalog& catalog) {
  auto csv = NamedCsv::open(file_name, bytes, kTimedColumns);
  if (!csv) return tl::unexpected(std::move(csv.error()));
  TimedRuns result;
  Predictor predict(catalog);
  const TimedRow cells(*csv);
  while (csv->next(result.counts)) {
    const std::string_view source = cells.text("source"), trust = cells.text("trust");
    if ((!filter.trust.empty() && filter.trust.find(trust) == std::string::npos) ||
        (!filter.source.empty() && filter.source != source)) {
      ++result.counts.filtered_out;
      continue;
    }
    auto scored = score(cells, pool, catalog, predict);
    if (!scored) {
      result.scored.skipped.add(scored.error(), csv->line());
      continue;
    }
    scored->at.line = csv->line();
    scored->at.id = pool.keep(cells.text("id"));
    scored->at.source = pool.keep(source);
    scored->at.trust = trust.empty() ? 'C' : trust.front();
    result.scored.runs.push_back(*scored);
  }
  return result;
}

}  // namespace reckon
