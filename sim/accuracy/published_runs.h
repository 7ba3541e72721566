#pragma once
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "sim/base/diagnostic.h"
#include "sim/base/quantity.h"

// Published training runs, one a row of a CSV: what was run (RunConfiguration, all that a
// prediction may look at) and how fast it was. docs/commands/accuracy.md lists the columns.
namespace reckon {

/// Texts that many rows share, kept once. Views of them live as long as the pool.
class TextPool {
 public:
  std::string_view keep(std::string_view text);

 private:
  std::set<std::string, std::less<>> texts_;
};

/// What was run. Zero and empty: the row does not say.
struct RunConfiguration {
  std::string_view accelerator;  // of a mixed pipeline the kinds, joined by "+"
  int accelerators = 0;
  int accelerators_per_node = 0;
  int nodes = 0;
  std::string_view intra_node_link;          // nvlink1..5, pcie3..5, ici, xgmi, none, unknown
  std::optional<BytesPerSecond> inter_node;  // of a node

  std::string_view model;    // resnet50_v1_5, bert_large, gpt, moe, ...
  std::string_view variant;  // which gpt: llama3.1-405b
  std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_width = 0, feed_forward = 0;
  std::int64_t vocabulary = 0;
  double parameters = 0;  // a count
  std::int64_t experts = 0, experts_per_token = 0, shared_experts = 0;
  std::optional<bool> gated_feed_forward;
  double active_parameters = 0;  // those that one token meets
  /// Blocks before the first with experts, and the inner width of their feed-forward part.
  std::int64_t dense_layers = 0, dense_feed_forward = 0;
  /// Multi-head latent attention (TransformerDimensions).
  std::int64_t q_lora_rank = 0, kv_lora_rank = 0;
  std::int64_t nope_head_width = 0, rope_head_width = 0, value_head_width = 0;

  std::string_view precision, likely_precision;  // the second: a guess where the first is unknown
  std::string_view strategy;                     // single, all_reduce, parameter_server, zero1..3,
                                                 // model_parallel, unknown
  int parameter_servers = 0;
  int data = 0, tensor = 0, pipeline = 0, context = 0, expert = 0;
  std::optional<int> zero_stage;  // of a strategy that does not say it
  int interleave = 0;             // parts of the network in one pipeline stage
  /// Layers of each stage, the embedding and the head one each: "7 9 9 9"; "": as evenly as can be.
  std::string_view layers_per_stage;
  /// Of a mixed pipeline the accelerators of each stage's nodes, a node each replica: "RTX-3090;
  /// RTX-2080-Ti,TITAN-RTX".
  std::string_view stage_accelerators;
  std::optional<bool> sequence_parallel;  // else: with tensor parallelism
  std::optional<bool> overlap;            // of transfers with arithmetic; else: they do
  double micro_batch = 0;  // of one replica in one forward pass; 0.5: two devices share a sample
  double batch_per_accelerator = 0;  // samples
  std::int64_t global_batch = 0;
  std::int64_t sequence_length = 0;
  std::string_view recompute;  // none, selective, full, unknown
  std::string_view stack;
  std::string_view framework;  // as printed; tells variants of networks and programs apart

  friend auto operator<=>(const RunConfiguration&, const RunConfiguration&) = default;
};

struct PublishedRun {
  int line = 0;
  std::string_view id, source;
  char trust = 'C';  // A well documented, B something inferred, C weak
  RunConfiguration run;
  SamplesPerSecond measured{};  // of the whole job
  Bytes peak_memory{};          // most on any accelerator; 0: not measured
  /// Of `peak_memory`: all that the driver counts, not what the framework allocated for tensors.
  bool peak_is_of_device = false;
};

/// Which rows are wanted; empty: all.
struct PublishedFilter {
  std::string trust;   // "AB"
  std::string source;  // one source's name
};
inline bool is_wanted(const PublishedRun& run, const PublishedFilter& filter) {
  return (filter.trust.empty() || filter.trust.find(run.trust) != std::string::npos) &&
         (filter.source.empty() || run.source == filter.source);
}

/// Rows that are left out, by reason.
struct SkippedRows {
  struct Reason {
    std::int64_t count = 0;
    int first_line = 0;  // of the file
  };
  std::map<std::string, Reason, std::less<>> reasons;

  /// How often it has come up, this time included.
  std::int64_t add(const std::string& reason, int line);
  void add(const SkippedRows& others);
  /// None: 0.
  std::int64_t count(std::string_view reason) const;
};

/// What became of the rows of a file. Every row is delivered or counted under a reason.
struct PublishedCounts {
  std::int64_t rows = 0;          // in the file, without its header
  std::int64_t filtered_out = 0;  // not wanted
  SkippedRows skipped;
  Diagnostics problems;  // errors of rows and warnings about columns; at most 20 of a kind
};

/// Reads rows from `bytes` one after the other and hands each good and wanted one to `deliver`; its
/// texts are in `pool`. A row that is wrong is counted in `skipped` and told in `problems`, with
/// its line; one without samples_per_second is counted, unless its value_raw are tokens/s of a
/// model whose sources' samples are known by their tokens (tokens_of_run()). A header that lacks a
/// column which a row cannot do without is an error, with all that it lacks.
Expected<PublishedCounts> read_published_runs(
    std::string_view file_name, std::string_view bytes, const PublishedFilter& filter,
    TextPool& pool, const std::function<void(const PublishedRun&)>& deliver);

/// Is it a table of vTrain's iterations, by its header?
bool is_vtrain_table(std::string_view bytes);

/// The same for a table of vTrain's measured iterations (its columns; vtrain_csv.cpp says what they
/// leave open).
Expected<PublishedCounts> read_vtrain_runs(std::string_view file_name, std::string_view bytes,
                                           TextPool& pool,
                                           const std::function<void(const PublishedRun&)>& deliver);

}  // namespace reckon
