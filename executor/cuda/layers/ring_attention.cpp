#include <algorithm>

#include "executor/cuda/layers/runner.h"
#include "executor/cuda/memory/streams.h"
#include "executor/train/parallel/token_parts.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/ring.h"
#include "kernels/elementwise.h"

// Attention whose tokens are shared out among context ranks, as
// executor/train/layers/ring_attention.cpp has it for CPUs: keys and values go round, a piece of
// rows works on a piece of columns at a time by the kernels of attention/, and what they make is
// merged in floats. Going backward the gradients of keys and values, floats, follow them home. What
// comes next travels on a stream of its own while the kernels work with what is here.
namespace reckon::cuda::run {
namespace {

/// Parts of scratch memory one behind another, each at a multiple of 256 bytes.
class Carver {
 public:
  explicit Carver(std::byte* memory) : memory_(memory) {}
  template <class T>
  T* take(std::int64_t count) {
    const std::int64_t at = used_;
    const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(T));
    used_ += (bytes + 255) / 256 * 256;
    return memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + at);
  }
  std::int64_t used() const { return used_; }

 private:
  std::byte* memory_;
  std::int64_t used_ = 0;
};

template <class E>
class RingAttentionRunner : public DeviceRunner<E> {
 public:
  RingAttentionRunner(const Attention& op, LayerId layer, const LayerGeometry& g)
      : op_(op),
        layer_(layer),
        batch_(g.batch),
        tokens_(g.output[0]),
        all_tokens_(g.part.tokens.total),
        fused_(g.inputs.size() == 1),
        first_head_(g.part.heads.first),
        q_stride_(g.inputs[0][1]),
        kv_stride_(fused_ ? q_stride_ : g.inputs[1][1]),
        runs_(g.part.tokens.runs),
        log_sums_(batch_ * op.heads * tokens_) {}

  std::int64_t scratch_bytes() const override {
    Carver carver(nullptr);
    carve(carver);
    return carver.used();
  }

  void forward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    Carver carver(m.scratch);
    Work w = carve(carver);
    pack(m, w, pass);
    const int ranks = pass.context->size();
    std::vector<char> begun(static_cast<std::size_t>(batch_) * runs_.size());
    const auto work = [&](int hop) {
      for_blocks(runs_of(pass, hop), [&](const Block& block) {
        check(gpu::attention_forward(shape_of(block), drop(block, pass), w.q + q_at(block),
                                     w.here + k_at(block), w.here + v_at(block), w.part,
                                     w.part_log_sums, pass.stream),
              "attention");
        char& any = begun[static_cast<std::size_t>(block.b) * runs_.size() + block.run];
        check(gpu::merge_attention(block.rows.count, op_.heads, op_.head_width, w.part,
                                   w.part_log_sums, w.sum + q_at(block), log_sums_of(block),
                                   any == 0, pass.stream),
              "attention");
        any = 1;
      });
    };
    for (int hop = 0; hop + 1 < ranks; ++hop) {
      beside(
          pass, [&] { work(hop); },
          [&] { pass_round(w.here, w.next, kv_size(), pass, pass.round); });
      std::swap(w.here, w.next);
    }
    work(ranks - 1);
    check(gpu::round_to(w.sum, m.output, q_size(), pass.stream), "attention");
  }

  void backward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    Carver carver(m.scratch);
    Work w = carve(carver);
    pack(m, w, pass);
    clear(w.sum, q_size(), pass);  // the gradient of the queries
    const int ranks = pass.context->size();
    for (int hop = 0; hop < ranks; ++hop) {
      const bool more = hop + 1 < ranks;
      const auto work = [&] {
        clear(w.gradient, kv_size(), pass);
        for_blocks(runs_of(pass, hop),
                   [&](const Block& block) { block_backward(m, w, block, pass); });
      };
      beside(pass, work, [&] {
        if (more) pass_round(w.here, w.next, kv_size(), pass, pass.round);
        if (hop > 1) pass_round(w.total, w.received, kv_size(), pass, pass.round);
      });
      // What those before have made of it comes first.
      float* to = hop == 0 ? w.own : hop == 1 ? w.total : w.received;
      if (hop < 2) clear(to, kv_size(), pass);
      check(gpu::add_widened(kv_size(), w.gradient, to, pass.stream), "attention gradient");
      if (hop > 1) std::swap(w.total, w.received);
      if (more) std::swap(w.here, w.next);
    }
    pass_round(w.total, w.received, kv_size(), pass, pass.stream);  // the own ones come home
    check(gpu::add<float>(w.own, w.received, w.own, kv_size(), pass.stream), "attention gradient");
    unpack(m, w, pass);
  }

 private:
  /// Rows of one run of this rank's tokens of a sample, columns of one of those at hand; `top` and
  /// `left` are where they begin in the rank's.
  struct Block {
    std::int64_t b = 0;
    std::size_t run = 0;
    TokenRun rows, columns;
    std::int64_t top = 0, left = 0;
  };
  struct Work {
    E *q, *here, *next;             // (B, T, heads w); (2, B, T, kv heads w): keys, then values
    E *part, *gradient;             // of a block's rows; of keys and values in a hop
    float* part_log_sums;           // of a block; its dots in the backward pass
    float* sum;                     // (B, T, heads w)
    float *own, *total, *received;  // of keys and values
  };

  Work carve(Carver& carver) const {
    Work w{};
    w.q = carver.take<E>(q_size());
    w.here = carver.take<E>(kv_size());
    w.next = carver.take<E>(kv_size());
    w.part = carver.take<E>(tokens_ * q_width());
    w.gradient = carver.take<E>(kv_size());
    w.part_log_sums = carver.take<float>(tokens_ * op_.heads);
    w.sum = carver.take<float>(q_size());
    w.own = carver.take<float>(kv_size());
    w.total = carver.take<float>(kv_size());
    w.received = carver.take<float>(kv_size());
    return w;
  }
  std::int64_t q_width() const { return op_.heads * op_.head_width; }
  std::int64_t kv_width() const { return op_.kv_heads * op_.head_width; }
  std::int64_t q_size() const { return batch_ * tokens_ * q_width(); }
  std::int64_t kv_size() const { return 2 * batch_ * tokens_ * kv_width(); }
  std::int64_t q_at(const Block& block) const {
    return (block.b * tokens_ + block.top) * q_width();
  }
  std::int64_t k_at(const Block& block) const {
    return (block.b * tokens_ + block.left) * kv_width();
  }
  std::int64_t v_at(const Block& block) const { return kv_size() / 2 + k_at(block); }
  /// (B, runs, heads, rows of a run)
  float* log_sums_of(const Block& block) {
    return log_sums_.data() + (block.b * tokens_ + block.top) * op_.heads;
  }

  template <class T>
  static void clear(T* values, std::int64_t count, const DevicePass& pass) {
    check(cudaMemsetAsync(values, 0, static_cast<std::size_t>(count) * sizeof(T), pass.stream),
          "attention");
  }
  /// Kernels on the pass's stream and transfers on pass.round, both behind what came before them
  /// and in front of what comes after.
  template <class Kernels, class Transfers>
  void beside(const DevicePass& pass, Kernels kernels, Transfers transfers) {
    check(cudaEventRecord(before_.get(), pass.stream), "attention");
    check(cudaStreamWaitEvent(pass.round, before_.get(), 0), "attention");
    kernels();
    transfers();  // last: through the hosts' memory it returns when it is done
    check(cudaEventRecord(arrived_.get(), pass.round), "attention");
    check(cudaStreamWaitEvent(pass.stream, arrived_.get(), 0), "attention");
  }
  /// To the next rank, from the one before.
  template <class T>
  static void pass_round(const T* out, T* in, std::int64_t count, const DevicePass& pass,
                         cudaStream_t stream) {
    const int ranks = pass.context->size(), own = pass.context->rank();
    std::vector<DeviceSwap> swaps(static_cast<std::size_t>(ranks));
    const auto values = static_cast<std::size_t>(count);
    swaps[static_cast<std::size_t>((own + 1) % ranks)].out = std::as_bytes(std::span(out, values));
    swaps[static_cast<std::size_t>((own + ranks - 1) % ranks)].in =
        std::as_writable_bytes(std::span(in, values));
    timed(pass.taken->context, Bytes{double(values * sizeof(T))},
          [&] { pass.context->queue_swaps(swaps, stream); });
  }

  /// body(the input's index, feature at which it begins in that input's rows, keys (0), values (1))
  template <class Body>
  void for_keys_and_values(Body body) const {
    for (const std::int64_t part : {0, 1})
      body(fused_ ? std::size_t{0} : static_cast<std::size_t>(1 + part),
           fused_ ? q_width() + part * kv_width() : 0, part);
  }
  void pack(const DeviceLayerMemory<E>& m, const Work& w, const DevicePass& pass) const {
    check(gpu::take_columns(batch_ * tokens_, q_width(), m.inputs[0], q_stride_, w.q, pass.stream),
          "queries");
    for_keys_and_values([&](std::size_t input, std::int64_t feature, std::int64_t part) {
      check(gpu::take_columns(batch_ * tokens_, kv_width(), m.inputs[input] + feature, kv_stride_,
                              w.here + part * kv_size() / 2, pass.stream),
            "keys and values");
    });
  }
  void unpack(const DeviceLayerMemory<E>& m, const Work& w, const DevicePass& pass) const {
    if (E* dq = m.input_gradients[0])
      check(gpu::put_columns(batch_ * tokens_, q_width(), w.sum, dq, q_stride_,
                             m.accumulate[0] != 0, pass.stream),
            "gradient of queries");
    for_keys_and_values([&](std::size_t input, std::int64_t feature, std::int64_t part) {
      E* to = m.input_gradients[input];
      if (to == nullptr) return;
      check(gpu::put_columns(batch_ * tokens_, kv_width(), w.own + part * kv_size() / 2,
                             to + feature, kv_stride_, m.accumulate[input] != 0, pass.stream),
            "gradient of keys and values");
    });
  }

  /// Places of the keys that are here after so many hops.
  std::vector<TokenRun> runs_of(const DevicePass& pass, int hop) const {
    return tokens_after(hop, all_tokens_, {pass.context->rank(), pass.context->size()});
  }
  template <class Body>
  void for_blocks(const std::vector<TokenRun>& columns, Body body) const {
    for (std::int64_t b = 0; b < batch_; ++b) {
      Block block{.b = b};
      for (block.run = 0; block.run < runs_.size(); ++block.run) {
        block.rows = runs_[block.run];
        block.left = 0;
        for (const TokenRun& run : columns) {
          block.columns = run;
          if (sees_any(op_, block.rows, block.columns)) body(block);
          block.left += run.count;
        }
        block.top += block.rows.count;
      }
    }
  }

  gpu::AttentionShape shape_of(const Block& block) const {
    return {.batch = 1,
            .tokens = block.rows.count,
            .seen = block.columns.count,
            .heads = op_.heads,
            .kv_heads = op_.kv_heads,
            .head_width = op_.head_width,
            .q_stride = q_width(),
            .kv_stride = kv_width(),
            .causal = op_.causal,
            .window = op_.window,
            .ahead = block.rows.first - block.columns.first};
  }
  /// Of probabilities as one rank has them.
  gpu::AttentionDropout drop(const Block& block, const DevicePass& pass) const {
    if (!pass.training || op_.dropout == 0) return {};
    return {.mask = dropout_stream(pass.seed, pass.step, static_cast<std::uint32_t>(index(layer_)),
                                   op_.dropout),
            .first_sample = pass.first_sample + block.b,
            .first_head = first_head_,
            .first_row = block.rows.first,
            .first_column = block.columns.first,
            .all = all_tokens_};
  }
  void block_backward(const DeviceLayerMemory<E>& m, const Work& w, const Block& block,
                      const DevicePass& pass) {
    const std::int64_t at = q_at(block);
    const gpu::AttentionGradients<E> gradients{.dq = w.part,
                                               .dk = w.gradient + k_at(block),
                                               .dv = w.gradient + v_at(block),
                                               .accumulate_k = true,
                                               .accumulate_v = true};
    check(
        gpu::attention_backward(shape_of(block), drop(block, pass), w.q + at, w.here + k_at(block),
                                w.here + v_at(block), m.output + at, m.output_gradient + at,
                                log_sums_of(block), w.part_log_sums, gradients, pass.stream),
        "attention gradient");
    check(gpu::add_widened(block.rows.count * q_width(), w.part, w.sum + at, pass.stream),
          "attention gradient");
  }

  Attention op_;
  LayerId layer_;
  std::int64_t batch_, tokens_, all_tokens_;
  bool fused_;
  std::int64_t first_head_;  // of all tensor ranks'
  std::int64_t q_stride_, kv_stride_;
  std::vector<TokenRun> runs_;
  DeviceBuffer<float> log_sums_;
  Event before_, arrived_;  // a hop's transfers
};

}  // namespace

template <class E>
DeviceRunnerPtr<E> ring_attention(const Attention& op, LayerId layer, const LayerGeometry& g) {
  return std::make_unique<RingAttentionRunner<E>>(op, layer, g);
}
template DeviceRunnerPtr<float> ring_attention<float>(const Attention&, LayerId,
                                                      const LayerGeometry&);
template DeviceRunnerPtr<Bf16> ring_attention<Bf16>(const Attention&, LayerId,
                                                    const LayerGeometry&);
template DeviceRunnerPtr<Half> ring_attention<Half>(const Attention&, LayerId,
                                                    const LayerGeometry&);

}  // namespace reckon::cuda::run
