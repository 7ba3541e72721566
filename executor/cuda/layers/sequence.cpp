#include "executor/cuda/layers/runner.h"
#include "executor/cuda/layers/token_blocks.h"
#include "kernels/attention/attention.h"
#include "kernels/elementwise.h"
#include "kernels/embedding.h"
#include "kernels/id_groups.h"
#include "kernels/record_id.h"
#include "kernels/select_rows.h"
#include "sim/base/check.h"

// Layers of sequences: tables, positions, attention.
namespace reckon::cuda::run {
namespace {

/// Sums of the vectors of `each` ids a row; 1: an embedding.
template <class E>
class TableRunner : public DeviceRunner<E> {
 public:
  TableRunner(std::int64_t table_rows, std::int64_t width, std::int64_t each,
              const LayerGeometry& g)
      : table_rows_(table_rows),
        width_(width),
        each_(each),
        part_{.first = g.part.rows.first, .count = table_rows},
        of_sample_(rows_of(g.output)),
        rows_(g.batch * of_sample_),
        groups_(3 * rows_ * each + 1) {}
  void forward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    check(gpu::embedding_forward(rows_, width_, m.record, places(m), m.weight, m.output,
                                 pass.stream, part_),
          "embedding");
  }
  void backward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    if (m.weight_gradient == nullptr) return;
    const GroupedIds grouped = group_own_ids(m);
    if (grouped.ids.empty()) return;
    gpu::IdGroups groups{.groups = static_cast<std::int64_t>(grouped.ids.size())};
    std::int32_t* at = groups_.data();  // (ids) ids, (ids + 1) starts, (ids) order, at most
    const auto upload = [&](const std::vector<std::int32_t>& values) {
      check(cudaMemcpyAsync(at, values.data(), values.size() * sizeof(std::int32_t),
                            cudaMemcpyHostToDevice, pass.stream),
            "embedding gradient");
      const std::int32_t* placed = at;
      at += values.size();
      return placed;
    };
    groups.ids = upload(grouped.ids);
    groups.starts = upload(grouped.starts);
    groups.order = upload(grouped.order);
    check(
        gpu::embedding_backward(width_, groups, m.output_gradient, m.weight_gradient, pass.stream),
        "embedding gradient");
  }

 private:
  gpu::IdPlaces places(const DeviceLayerMemory<E>& m) const {
    return {.rows = of_sample_, .each = each_, .first = m.record_first, .stride = m.record_width};
  }
  /// Of this rank's rows of the table, each with the rows of vectors that it is added to.
  GroupedIds group_own_ids(const DeviceLayerMemory<E>& m) const {
    const gpu::IdPlaces ids = places(m);
    std::vector<std::int64_t> own;
    bool all = true;
    for (std::int64_t row = 0; row < rows_; ++row)
      for (std::int64_t k = 0; k < each_; ++k) {
        const std::int64_t id =
            record_id(m.record_here[static_cast<std::size_t>(ids.at(row) + k)]) - part_.first;
        const bool here = id >= 0 && id < part_.count;
        own.push_back(here ? id : table_rows_);
        all = all && here;
      }
    GroupedIds grouped = group_ids(own, all ? table_rows_ : table_rows_ + 1);
    if (!all) {  // the last group is of all others
      grouped.ids.pop_back();
      grouped.starts.pop_back();
      grouped.order.resize(static_cast<std::size_t>(grouped.starts.back()));
    }
    for (std::int32_t& place : grouped.order) place /= static_cast<std::int32_t>(each_);
    return grouped;
  }
  std::int64_t table_rows_, width_, each_;
  gpu::TableRows part_;  // of the table's
  std::int64_t of_sample_, rows_;
  DeviceBuffer<std::int32_t> groups_;
};

template <class E>
class PositionRunner : public DeviceRunner<E> {
 public:
  explicit PositionRunner(const LayerGeometry& g)
      : size_(elements(g.output)),
        width_(features_of(g.output)),
        count_(g.batch * size_),
        blocks_(token_blocks(g.part.tokens, g.batch, rows_of(g.output))) {}
  void forward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    for (const TokenBlock& block : blocks_)
      check(
          gpu::position_forward(block.samples, block.count * width_, m.inputs[0] + at(block),
                                m.weight + block.place * width_, m.output + at(block), pass.stream),
          "positions");
  }
  void backward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    if (m.weight_gradient != nullptr)
      for (const TokenBlock& block : blocks_)
        check(gpu::position_backward(block.samples, block.count * width_,
                                     m.output_gradient + at(block),
                                     m.weight_gradient + block.place * width_, pass.stream),
              "position gradient");
    if (m.input_gradients[0] != nullptr)
      check(gpu::scale(m.output_gradient, 1.0f, m.input_gradients[0], m.accumulate[0] != 0, count_,
                       pass.stream),
            "position gradient");
  }

 private:
  std::int64_t at(const TokenBlock& block) const {
    return block.sample * size_ + block.row * width_;
  }
  std::int64_t size_, width_, count_;  // size: of a sample
  std::vector<TokenBlock> blocks_;
};

template <class E>
class RotaryRunner : public DeviceRunner<E> {
 public:
  RotaryRunner(const RotaryEmbedding& op, const LayerGeometry& g)
      : shape_{.heads = g.output[1] / op.head_width,
               .head_width = op.head_width,
               .rotated = op.rotated > 0 ? op.rotated : op.head_width,
               .theta = op.theta},
        tokens_(g.output[0]),
        width_(g.output[1]),
        blocks_(token_blocks(g.part.tokens, g.batch, tokens_)) {}
  void forward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    turn(1, m.inputs[0], m.output, false, pass);
  }
  void backward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    if (m.input_gradients[0] != nullptr)
      turn(-1, m.output_gradient, m.input_gradients[0], m.accumulate[0] != 0, pass);
  }

 private:
  void turn(int direction, const E* from, E* to, bool accumulate, const DevicePass& pass) const {
    for (const TokenBlock& block : blocks_) {
      gpu::RotaryShape shape = shape_;
      shape.batch = block.samples;
      shape.tokens = block.count;
      shape.first = block.place;
      const std::int64_t at = (block.sample * tokens_ + block.row) * width_;
      check(gpu::rotary(shape, direction, from + at, to + at, accumulate, pass.stream), "rotary");
    }
  }
  gpu::RotaryShape shape_;  // of a block what it says
  std::int64_t tokens_, width_;
  std::vector<TokenBlock> blocks_;
};

template <class E>
class AttentionRunner : public DeviceRunner<E> {
 public:
  AttentionRunner(const Attention& op, LayerId layer, const LayerGeometry& g)
      : op_(op), layer_(layer), first_head_(g.part.heads.first), fused_(g.inputs.size() == 1) {
    shape_ = {.batch = g.batch,
              .tokens = g.output[0],
              .seen = fused_ ? g.output[0] : g.inputs[1][0],
              .heads = op.heads,
              .kv_heads = op.kv_heads,
              .head_width = op.head_width,
              .q_stride = g.inputs[0][1],
              .kv_stride = fused_ ? g.inputs[0][1] : g.inputs[1][1],
              .causal = op.causal,
              .window = op.window};
    const std::int64_t rows = shape_.batch * shape_.heads * shape_.tokens;
    log_sums_ = DeviceBuffer<float>(rows);
    dots_ = DeviceBuffer<float>(rows);
  }
  void forward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    check(gpu::attention_forward(shape_, drop(pass), m.inputs[0], key_of(m.inputs),
                                 value_of(m.inputs), m.output, log_sums_.data(), pass.stream),
          "attention");
  }
  void backward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    const auto accumulate = [&](std::size_t k) { return m.accumulate[fused_ ? 0 : k] != 0; };
    const gpu::AttentionGradients<E> gradients{.dq = m.input_gradients[0],
                                               .dk = key_of(m.input_gradients),
                                               .dv = value_of(m.input_gradients),
                                               .accumulate_q = accumulate(0),
                                               .accumulate_k = accumulate(1),
                                               .accumulate_v = accumulate(2)};
    check(gpu::attention_backward(shape_, drop(pass), m.inputs[0], key_of(m.inputs),
                                  value_of(m.inputs), m.output, m.output_gradient, log_sums_.data(),
                                  dots_.data(), gradients, pass.stream),
          "attention gradient");
  }

 private:
  template <class P>
  P key_of(const std::vector<P>& inputs) const {
    return !fused_ ? inputs[1] : inputs[0] != nullptr ? inputs[0] + width(op_.heads) : nullptr;
  }
  template <class P>
  P value_of(const std::vector<P>& inputs) const {
    return !fused_                ? inputs[2]
           : inputs[0] != nullptr ? inputs[0] + width(op_.heads + op_.kv_heads)
                                  : nullptr;
  }
  std::int64_t width(std::int64_t heads) const { return heads * op_.head_width; }
  gpu::AttentionDropout drop(const DevicePass& pass) const {
    if (!pass.training || op_.dropout == 0) return {};
    return {.mask = dropout_stream(pass.seed, pass.step, static_cast<std::uint32_t>(index(layer_)),
                                   op_.dropout),
            .first_sample = pass.first_sample,
            .first_head = first_head_};
  }

  Attention op_;
  LayerId layer_;
  std::int64_t first_head_;  // of all tensor ranks'
  bool fused_;
  gpu::AttentionShape shape_;
  DeviceBuffer<float> log_sums_, dots_;  // (B, heads, T)
};

template <class E>
class SelectTokensRunner : public DeviceRunner<E> {
 public:
  SelectTokensRunner(const SelectTokens& op, const LayerGeometry& g)
      : op_(op),
        selection_{
            .batch = g.batch, .rows = g.inputs[0][0], .count = op.count, .width = g.output[1]} {}
  void forward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    check(gpu::select_rows(of(pass), m.inputs[0], m.output, pass.stream), "selected tokens");
  }
  void backward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    if (E* dx = m.input_gradients[0])
      check(gpu::select_rows_gradient(of(pass), m.output_gradient, dx, m.accumulate[0] != 0,
                                      pass.stream),
            "gradient of selected tokens");
  }

 private:
  gpu::RowSelection of(const DevicePass& pass) const {
    gpu::RowSelection s = selection_;
    if (op_.masked) s.at = pass.masked;
    RECKON_CHECK(!op_.masked || s.at != nullptr);
    return s;
  }
  SelectTokens op_;
  gpu::RowSelection selection_;
};

}  // namespace

template <class E>
DeviceRunnerPtr<E> embedding(const Embedding& op, const LayerGeometry& g) {
  return std::make_unique<TableRunner<E>>(op.rows, op.width, 1, g);
}
template <class E>
DeviceRunnerPtr<E> embedding_bag(const EmbeddingBag& op, const LayerGeometry& g) {
  return std::make_unique<TableRunner<E>>(op.rows, op.width, op.ids, g);
}
template <class E>
DeviceRunnerPtr<E> position_embedding(const PositionEmbedding&, const LayerGeometry& g) {
  return std::make_unique<PositionRunner<E>>(g);
}
template <class E>
DeviceRunnerPtr<E> rotary(const RotaryEmbedding& op, const LayerGeometry& g) {
  return std::make_unique<RotaryRunner<E>>(op, g);
}
template <class E>
DeviceRunnerPtr<E> attention(const Attention& op, LayerId layer, const LayerGeometry& g) {
  if (!g.part.tokens.all()) return ring_attention<E>(op, layer, g);
  return std::make_unique<AttentionRunner<E>>(op, layer, g);
}
template <class E>
DeviceRunnerPtr<E> select_tokens(const SelectTokens& op, const LayerGeometry& g) {
  return std::make_unique<SelectTokensRunner<E>>(op, g);
}

#define RECKON_RUN_SEQUENCE_FOR(E)                                                           \
  template DeviceRunnerPtr<E> embedding<E>(const Embedding&, const LayerGeometry&);          \
  template DeviceRunnerPtr<E> embedding_bag<E>(const EmbeddingBag&, const LayerGeometry&);   \
  template DeviceRunnerPtr<E> position_embedding<E>(const PositionEmbedding&,                \
                                                    const LayerGeometry&);                   \
  template DeviceRunnerPtr<E> rotary<E>(const RotaryEmbedding&, const LayerGeometry&);       \
  template DeviceRunnerPtr<E> attention<E>(const Attention&, LayerId, const LayerGeometry&); \
  template DeviceRunnerPtr<E> select_tokens<E>(const SelectTokens&, const LayerGeometry&)
RECKON_RUN_SEQUENCE_FOR(float);
RECKON_RUN_SEQUENCE_FOR(Bf16);
RECKON_RUN_SEQUENCE_FOR(Half);

}  // namespace reckon::cuda::run
