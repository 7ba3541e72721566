#include <fmt/format.h>

#include <array>

#include "sim/accuracy/named_csv.h"
#include "sim/accuracy/published_runs.h"
#include "sim/base/unit_text.h"

// The table of iteration times that vTrain publishes beside its simulator [Bang et al. 2024,
// "vTrain", MICRO 57; github.com/VIA-Research/vTrain ground-truth tables]: GPT on 8 x A100-80 of a
// node with NVLink, Megatron-DeepSpeed, fp16, full recomputation; 800 Gb/s between nodes. Tensor
// parallelism takes all-reduces (what the simulator has measured and times [ibid., Sec. III]), so
// sequences are not split.
namespace reckon {
namespace {

enum VTrainColumn {
  gpus,
  batch,
  micro,
  hidden,
  heads,
  layers,
  sequence,
  tensor,
  data,
  pipeline,
  time
};
constexpr std::array<std::string_view, 11> kVTrainColumns{"# GPUs",
                                                          "global batch",
                                                          "micro batch",
                                                          "hidden size",
                                                          "attention heads",
                                                          "# layers",
                                                          "sequence length",
                                                          "tensor parallelism",
                                                          "data parallelism",
                                                          "pipeline parallelism",
                                                          "iteration time (ms)"};

/// GPT-2's 50,257 tokens as Megatron pads them for tensor parallelism, to a multiple of 128 x 8
/// [Megatron-LM megatron/tokenizer, make-vocab-size-divisible-by]; not printed in the table.
constexpr std::int64_t kVocabulary = 51200;

PublishedRun run_of(const std::array<double, kVTrainColumns.size()>& v, TextPool& pool) {
  PublishedRun r;
  r.source = pool.keep("vtrain");
  r.trust = 'A';
  RunConfiguration& run = r.run;
  run.accelerator = pool.keep("A100-SXM4-80");
  run.accelerators = static_cast<int>(v[gpus]);
  run.accelerators_per_node = std::min(8, run.accelerators);
  run.nodes = (run.accelerators + 7) / 8;
  run.intra_node_link = pool.keep("nvlink3");
  run.inter_node = BytesPerSecond{800e9 / 8};
  run.model = pool.keep("gpt");
  run.layers = static_cast<std::int64_t>(v[layers]);
  run.hidden = static_cast<std::int64_t>(v[hidden]);
  run.heads = run.kv_heads = static_cast<std::int64_t>(v[heads]);
  run.feed_forward = 4 * run.hidden;
  run.vocabulary = kVocabulary;
  run.sequence_length = static_cast<std::int64_t>(v[sequence]);
  run.variant = pool.keep(fmt::format("gpt-h{}-l{}", run.hidden, run.layers));
  run.gated_feed_forward = false;
  // Megatron shares the embedding with the output: 12 h^2 + 13 h a block, one look-up table.
  run.parameters = double(run.layers) * (12.0 * v[hidden] + 13) * v[hidden] +
                   double(run.vocabulary + run.sequence_length) * v[hidden];
  run.precision = pool.keep("fp16");
  run.strategy = pool.keep("model_parallel");
  run.data = static_cast<int>(v[data]);
  run.tensor = static_cast<int>(v[tensor]);
  run.pipeline = static_cast<int>(v[pipeline]);
  run.context = run.expert = 1;
  run.sequence_parallel = false;
  run.micro_batch = v[micro];
  run.global_batch = static_cast<std::int64_t>(v[batch]);
  run.batch_per_accelerator = v[batch] / v[gpus];
  run.recompute = pool.keep("full");
  run.stack = pool.keep("megatron-deepspeed");
  r.measured = SamplesPerSecond{v[batch] / (v[time] / 1000)};
  return r;
}

}  // namespace

bool is_vtrain_table(std::string_view bytes) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";  // of UTF-8, which it begins with
  if (bytes.starts_with(kMark)) bytes.remove_prefix(kMark.size());
  return bytes.starts_with(kVTrainColumns.front());
}

Expected<PublishedCounts> read_vtrain_runs(
    std::string_view file_name, std::string_view bytes, TextPool& pool,
    const std::function<void(const PublishedRun&)>& deliver) {
  auto csv = NamedCsv::open(file_name, bytes, kVTrainColumns);
  if (!csv) return tl::unexpected(std::move(csv.error()));
  PublishedCounts counts;
  while (csv->next(counts)) {
    constexpr double kMost = 1e9;  // an int
    std::array<double, kVTrainColumns.size()> values{};
    std::string wrong;
    for (std::size_t i = 0; i < kVTrainColumns.size() && wrong.empty(); ++i) {
      const auto value = parse_number(csv->text(kVTrainColumns[i]));
      if (value && *value > 0 && *value <= kMost)
        values[i] = *value;
      else
        wrong = fmt::format("{} is not a number above zero and at most 1e9", kVTrainColumns[i]);
    }
    if (!wrong.empty()) {
      csv->skip(counts, wrong);
      continue;
    }
    PublishedRun r = run_of(values, pool);
    r.line = csv->line();
    deliver(r);
  }
  return counts;
}

}  // namespace reckon
