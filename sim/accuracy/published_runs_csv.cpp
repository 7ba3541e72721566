#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "sim/accuracy/published_runs.h"
#include "sim/accuracy/row_cells.h"
#include "sim/accuracy/run/plan.h"
#include "sim/base/text/csv.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

constexpr int kProblemsOfAKind = 20;

// What a row cannot do without, and what it can.
constexpr std::array<std::string_view, 8> kNeeded{
    "source", "trust",     "accelerator", "accelerators",
    "model",  "precision", "strategy",    "samples_per_second"};
constexpr std::array<std::string_view, 31> kOptional{"id",
                                                     "accelerators_per_node",
                                                     "nodes",
                                                     "intra_node_link",
                                                     "inter_node_gbps",
                                                     "layers",
                                                     "hidden",
                                                     "heads",
                                                     "kv_heads",
                                                     "ffn",
                                                     "vocab",
                                                     "params",
                                                     "experts",
                                                     "parameter_servers",
                                                     "dp",
                                                     "tp",
                                                     "pp",
                                                     "cp",
                                                     "ep",
                                                     "micro_batch",
                                                     "batch_per_accelerator",
                                                     "global_batch",
                                                     "sequence_length",
                                                     "recompute",
                                                     "stack",
                                                     "variant",
                                                     "top_k",
                                                     "shared_experts",
                                                     "head_dim",
                                                     "gated_mlp",
                                                     "likely_precision"};
// Read where they are there: to tell variants of a network apart, how a pipeline is scheduled, and
// to score with, the first two where samples_per_second is blank.
constexpr std::array<std::string_view, 19> kQuiet{"framework",
                                                  "overlap",
                                                  "zero_stage",
                                                  "interleave",
                                                  "sequence_parallel",
                                                  "active_params",
                                                  "dense_layers",
                                                  "dense_ffn",
                                                  "q_lora_rank",
                                                  "kv_lora_rank",
                                                  "qk_nope_head_dim",
                                                  "qk_rope_head_dim",
                                                  "v_head_dim",
                                                  "value_raw",
                                                  "unit_raw",
                                                  "peak_memory_gib",
                                                  "layers_per_stage",
                                                  "stage_accelerators",
                                                  "notes"};
// Of the format, and not for a prediction to look at, or of no use to one.
constexpr std::array<std::string_view, 8> kUnread{
    "source_ref",          "year",
    "metric_raw",          "gpus_used_per_node",
    "step_seconds",        "peak_memory_gib_by_rank",
    "reserved_memory_gib", "gradient_reduction_seconds"};

/// Sources whose peaks are the driver's count of a device: sailor reads nvidia-smi's memory.used
/// [eth-easl/sailor deepspeed/pipe_engine.py, get_total_used_mem].
constexpr std::array<std::string_view, 1> kReadFromDriver{"sailor"};

/// The column, or where it is blank what the notes have behind "stages by machine:".
std::string_view stage_accelerators(RowCells& row) {
  if (!row.blank("stage_accelerators")) return row.text("stage_accelerators");
  constexpr std::string_view kLead = "stages by machine: ";
  if (row.text("accelerator").find('+') == std::string_view::npos) return {};
  const std::string_view notes = row.text("notes");
  const std::size_t at = notes.find(kLead);
  return at == std::string_view::npos ? std::string_view{} : notes.substr(at + kLead.size());
}

class Reading {
 public:
  Reading(std::string_view file, std::string_view bytes, const PublishedFilter& filter,
          TextPool& pool)
      : file_(file), csv_(bytes), filter_(filter), pool_(pool) {}

  /// False: the rows cannot be read.
  bool header() {
    std::vector<CsvField> row;
    if (!csv_.next(row)) {
      error({}, "the file is empty", fmt::format("its first line names columns: {}", needed()));
      return false;
    }
    const std::size_t before = result_.problems.size();
    for (const CsvProblem& p : csv_.problems()) error({{}, p.line, p.column}, p.what, p.hint);
    for (std::size_t i = 0; i < row.size(); ++i) add_column(row[i], i);
    for (const std::string_view name : kNeeded)
      if (!columns_.contains(name))
        error(row.front(), fmt::format("column '{}' is missing", name),
              fmt::format("a row cannot do without {}", needed()));
    if (has_errors(std::span(result_.problems).subspan(before))) return false;
    std::string absent;
    for (const std::string_view name : kOptional)
      if (!columns_.contains(name)) absent += (absent.empty() ? "" : ", ") + std::string(name);
    if (!absent.empty())
      result_.problems.push_back({Severity::warning, place(row.front()),
                                  "columns are missing and read as blank: " + absent, ""});
    return true;
  }

  void rows(const std::function<void(const PublishedRun&)>& deliver) {
    std::vector<CsvField> cells;
    while (csv_.next(cells)) {
      ++result_.rows;
      if (!csv_.problems().empty()) {
        const CsvProblem& p = csv_.problems().front();
        skip({{}, p.line, p.column}, p.what, p.hint);
      } else if (cells.size() != columns_in_file_) {
        skip(cells.front(), fmt::format("not as many fields as columns ({})", columns_in_file_),
             "put a field that holds a comma into double quotes");
      } else {
        one(cells, deliver);
      }
    }
  }

  PublishedCounts take() { return std::move(result_); }

 private:
  static std::string needed() { return fmt::format("{}", fmt::join(kNeeded, ", ")); }
  SourcePlace place(const CsvField& at) const { return {std::string(file_), at.line, at.column}; }
  void error(const CsvField& at, std::string what, std::string hint) {
    result_.problems.push_back({Severity::error, place(at), std::move(what), std::move(hint)});
  }
  void skip(const CsvField& at, const std::string& reason, const std::string& hint = "") {
    if (result_.skipped.add(reason, at.line) <= kProblemsOfAKind)
      error(at, fmt::format("row skipped: {}", reason), hint);
  }

  void add_column(const CsvField& cell, std::size_t index) {
    ++columns_in_file_;
    const auto known = [&](auto& names) {
      return std::find(names.begin(), names.end(), cell.text) != names.end();
    };
    if (!known(kNeeded) && !known(kOptional) && !known(kQuiet)) {
      if (!known(kUnread)) unknown_column(cell);
      return;
    }
    if (!columns_.emplace(std::string(cell.text), index).second)
      error(cell, fmt::format("column '{}' is there twice", cell.text), "");
  }
  void unknown_column(const CsvField& cell) {
    std::vector<std::string> names(kNeeded.begin(), kNeeded.end());
    names.insert(names.end(), kOptional.begin(), kOptional.end());
    result_.problems.push_back({Severity::warning, place(cell),
                                fmt::format("unknown column '{}' is not read{}", cell.text,
                                            did_you_mean(cell.text, names)),
                                ""});
  }

  void one(std::span<const CsvField> cells,
           const std::function<void(const PublishedRun&)>& deliver) {
    RowCells row(columns_, cells, pool_);
    PublishedRun m;
    m.line = cells.front().line;
    const std::string_view trust = row.text("trust");
    m.source = row.text("source");
    if (trust != "A" && trust != "B" && trust != "C")
      row.fail("trust", "is not A, B or C");
    else
      m.trust = trust.front();
    if (row.reason().empty() && !wanted(m)) {
      ++result_.filtered_out;
      return;
    }
    m.id = row.text("id");
    m.run = configuration(row);
    const auto measured = measured_of(row, m.run);
    m.measured = measured.value_or(SamplesPerSecond{});
    constexpr double kGib = 1073741824;
    m.peak_memory = Bytes{row.number("peak_memory_gib", 1e6) * kGib};
    m.peak_is_of_device = std::ranges::find(kReadFromDriver, m.source) != kReadFromDriver.end();
    if (row.reason().empty() && !measured) {
      result_.skipped.add("samples_per_second is blank", m.line);
      return;
    }
    if (m.run.accelerator.empty()) row.fail("accelerator", "is blank");
    if (m.run.model.empty()) row.fail("model", "is blank");
    if (m.run.accelerators == 0) row.fail("accelerators", "is zero or blank");
    if (m.measured.v <= 0) row.fail("samples_per_second", "is not above zero");
    if (!row.reason().empty()) return skip(row.place(), row.reason(), row.found());
    deliver(m);
  }

  bool wanted(const PublishedRun& m) const {
    return (filter_.trust.empty() || filter_.trust.find(m.trust) != std::string::npos) &&
           (filter_.source.empty() || filter_.source == m.source);
  }

  /// nullopt: nothing that can be scored was measured.
  std::optional<SamplesPerSecond> measured_of(RowCells& row, const RunConfiguration& run) {
    if (!row.blank("samples_per_second")) return SamplesPerSecond{row.number("samples_per_second")};
    if (row.text("unit_raw") != "tokens/s") return std::nullopt;
    // It builds the network: once for rows of one program.
    const auto [known, is_new] = tokens_.try_emplace(
        Program{run.model, run.variant, run.stack, run.framework, run.sequence_length}, 0);
    if (is_new) known->second = tokens_of_run(run);
    const double tokens = known->second;
    if (tokens == 0) return std::nullopt;
    return SamplesPerSecond{row.number("value_raw") / tokens};
  }

  static RunConfiguration configuration(RowCells& row) {
    RunConfiguration run;
    run.accelerator = row.text("accelerator");
    run.accelerators = row.count("accelerators");
    run.accelerators_per_node = row.count("accelerators_per_node");
    run.nodes = row.count("nodes");
    run.intra_node_link = row.text("intra_node_link");
    if (!row.blank("inter_node_gbps"))
      run.inter_node = BytesPerSecond{row.number("inter_node_gbps", 1e7) * 1e9 / 8};
    run.model = row.text("model");
    run.variant = row.text("variant");
    run.layers = row.whole("layers");
    run.hidden = row.whole("hidden");
    run.heads = row.whole("heads");
    run.kv_heads = row.whole("kv_heads");
    run.head_width = row.whole("head_dim");
    run.feed_forward = row.whole("ffn");
    run.vocabulary = row.whole("vocab");
    run.parameters = row.number("params");
    run.experts = row.whole("experts");
    run.experts_per_token = row.whole("top_k");
    run.shared_experts = row.whole("shared_experts");
    if (!row.blank("gated_mlp")) run.gated_feed_forward = row.whole("gated_mlp", 1) == 1;
    run.active_parameters = row.number("active_params");
    run.dense_layers = row.whole("dense_layers");
    run.dense_feed_forward = row.whole("dense_ffn");
    run.q_lora_rank = row.whole("q_lora_rank");
    run.kv_lora_rank = row.whole("kv_lora_rank");
    run.nope_head_width = row.whole("qk_nope_head_dim");
    run.rope_head_width = row.whole("qk_rope_head_dim");
    run.value_head_width = row.whole("v_head_dim");
    run.precision = row.text("precision");
    run.likely_precision = row.text("likely_precision");
    run.strategy = row.text("strategy");
    run.parameter_servers = row.count("parameter_servers");
    run.data = row.count("dp");
    run.tensor = row.count("tp");
    run.pipeline = row.count("pp");
    run.context = row.count("cp");
    run.expert = row.count("ep");
    run.interleave = row.count("interleave");
    run.layers_per_stage = row.text("layers_per_stage");
    run.stage_accelerators = stage_accelerators(row);
    if (!row.blank("sequence_parallel"))
      run.sequence_parallel = row.whole("sequence_parallel", 1) == 1;
    if (!row.blank("overlap")) run.overlap = row.whole("overlap", 1) == 1;
    if (!row.blank("zero_stage")) run.zero_stage = static_cast<int>(row.whole("zero_stage", 3));
    run.micro_batch = row.number("micro_batch", 1e9);
    run.batch_per_accelerator = row.number("batch_per_accelerator", 1e12);
    run.global_batch = row.whole("global_batch");
    run.sequence_length = row.whole("sequence_length", 1 << 24);
    run.recompute = row.text("recompute");
    run.stack = row.text("stack");
    run.framework = row.text("framework");
    return run;
  }

  std::string_view file_;
  CsvReader csv_;
  const PublishedFilter& filter_;
  TextPool& pool_;
  std::map<std::string, std::size_t, std::less<>> columns_;
  std::size_t columns_in_file_ = 0;
  using Program = std::tuple<std::string_view, std::string_view, std::string_view, std::string_view,
                             std::int64_t>;
  std::map<Program, double> tokens_;  // of a sample
  PublishedCounts result_;
};

}  // namespace

std::string_view TextPool::keep(std::string_view text) {
  const auto at = texts_.find(text);
  return at != texts_.end() ? *at : *texts_.emplace(text).first;
}

Expected<PublishedCounts> read_published_runs(
    std::string_view file_name, std::string_view bytes, const PublishedFilter& filter,
    TextPool& pool, const std::function<void(const PublishedRun&)>& deliver) {
  Reading reading(file_name, bytes, filter, pool);
  const bool readable = reading.header();
  if (readable) reading.rows(deliver);
  PublishedCounts counts = reading.take();
  if (!readable) return tl::unexpected(std::move(counts.problems));
  return counts;
}

}  // namespace reckon
