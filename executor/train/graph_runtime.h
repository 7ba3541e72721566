#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/comm/gradient_exchange.h"
#include "executor/train/layers/cannot_run.h"
#include "executor/train/layers/expert_traffic.h"
#include "executor/train/layers/layer_runner.h"
#include "executor/train/parallel/metered_groups.h"
#include "executor/train/parallel/rank_model.h"
#include "executor/train/parameters.h"
#include "executor/train/products/aligned_buffer.h"
#include "executor/train/recipe/schedule.h"
#include "executor/train/rounding.h"
#include "sim/base/diagnostic.h"

// Runs a ModelGraph: forward, backward. Float trains; double is the reference that float is held
// to.
namespace reckon {

/// One batch of B samples, in the catalogue's shapes: images (B, C, H, W), tokens (B, T) as whole
/// numbers. Ranks that share a model have the same whole samples, whatever part of their tokens is
/// theirs; those that only share experts have samples of their own. All spans are the caller's and
/// must outlive the pass.
struct BatchView {
  std::vector<std::span<const float>> inputs;   // one an InputLayer, in the order of the layers
  std::vector<std::span<const float>> targets;  // one a loss: classes (B, rows), or as its input
  std::span<const std::int32_t> masked;         // where the model has SelectTokens{masked}
};

struct RuntimeOptions {
  std::int64_t batch = 1;
  Recompute recompute = Recompute::none;
  std::uint64_t seed = 1;  // of dropout
  bool trains = true;      // else forward passes alone, in less memory
  /// Of a part of the graph, a stage of a pipeline, and where its parameters lie; nothing: all of
  /// it.
  std::optional<LayerSpan> part = std::nullopt;
  std::optional<ParameterLayout> layout = std::nullopt;
  Rounding rounding = Rounding::none;  // GraphRuntime<float>'s: what it holds is rounded so
  ModelPlace place = {};               // where several ranks hold the model: this one's
  ModelGroups groups = {};
  /// Blocks of each stage of a pipeline (PlannedWorkload::stage_blocks); empty: as even as can be.
  std::vector<int> stage_blocks = {};
};

/// Which step a pass belongs to; both decide the dropout masks.
struct StepPosition {
  std::int64_t step = 0;
  std::int64_t first_sample = 0;  // of the batch, in all samples of the step, on all ranks
};

/// Called around each action of a pass, by its index in Schedule::actions; may be empty.
struct ActionHooks {
  std::function<void(std::size_t action)> before, after;
};

/// Who takes gradients of a backward pass.
struct GradientTaker {
  /// Those of a layer are final and may leave, last layer first. Empty: other passes will add to
  /// all of them.
  std::function<void(ParameterRange)> ready;
  /// Whether those of a layer leave behind this pass; empty: all do. Of others later passes add to
  /// what this one leaves.
  std::function<bool(ParameterRange)> leaves;

  bool takes(ParameterRange range) const { return ready && (!leaves || leaves(range)); }
};

/// State that is neither parameter nor gradient: "bn1.running_mean", "bn1.running_var".
template <class T>
struct RunningStatistics {
  std::string name;
  std::span<T> values;
};
/// What a runner of `layer` keeps of it: means, then variances; empty: nothing.
template <class T>
void add_statistics(const std::string& layer, std::span<T> kept,
                    std::vector<RunningStatistics<T>>& all) {
  if (kept.empty()) return;
  const std::size_t channels = kept.size() / 2;
  all.push_back({layer + ".running_mean", kept.first(channels)});
  all.push_back({layer + ".running_var", kept.subspan(channels)});
}

template <class T>
class GraphRuntime {
 public:
  /// `model`, `workers` and the groups must outlive it. cannot_run(model) must be empty, and
  /// make_rank_model(model, options.place) without errors. Ranks of a group make the same calls in
  /// the same order; passes throw CommError.
  GraphRuntime(const ModelGraph& model, RuntimeOptions options, Workers& workers);

  const ParameterLayout& layout() const { return layout_; }
  std::int64_t batch() const { return options_.batch; }
  const Schedule& schedule() const { return schedule_; }
  const RankModel& rank_model() const { return rank_; }
  /// From the next pass on.
  void set_hooks(ActionHooks hooks) { hooks_ = std::move(hooks); }

  /// The loss: mean over the samples, the same on all ranks that share a model; 0 of a part that
  /// has none. `training`: with dropout and with the batch's own statistics, and a backward pass
  /// may follow. values: layout().count. Of a part: crossing_in() has been filled.
  double forward(const BatchView& batch, std::span<const T> values, StepPosition position,
                 bool training);
  /// What `last`, of which no loss is a part, makes of the first `samples` of the
  /// batch, 1..batch(): without training, and no layer behind it is run. Targets may be left out.
  std::span<const T> predict(const BatchView& batch, std::int64_t samples,
                             std::span<const T> values, LayerId last);
  /// Gradients of (scale * loss) of the last forward pass are added to `gradients`; scale =
  /// 1 / micro-batches when accumulating. Before `taker` is told of a layer's, those of which
  /// tensor ranks have summands (ParameterSlot::sums_gradient) are added up, once a step. Those of
  /// context ranks, each of its tokens, are summands as those of data-parallel ranks are.
  void backward(std::span<const T> values, std::span<T> gradients, double scale,
                const GradientTaker& taker);

  /// Of a part: outputs of layers of other parts, what they are or their gradients, that come into
  /// it (before a forward pass; before a backward pass) and go out of it (behind it). No gradient:
  /// an empty span.
  struct Crossing {
    std::vector<std::span<T>> values, gradients;
  };
  Crossing crossing_in() { return crossing_at(part_.first); }
  Crossing crossing_out() { return crossing_at(part_.end); }

  /// What passes since the last call took of exchanges with ranks that share the model.
  ModelExchanges take_exchanged() { return groups_.take(); }

  std::vector<RunningStatistics<T>> running_statistics();

  /// Output of a layer after a forward pass without training; of others it may be overwritten.
  std::span<const T> output(LayerId layer) const;
  /// Activations and their gradients; scratch memory of layers is not in it.
  Bytes activation_memory() const;

 private:
  struct Prepared {  // memory of a layer in the forward pass, and after it
    LayerMemory<T> forward, late;
    std::ptrdiff_t weight = -1, bias = -1;  // first element in the flat buffers; -1: none
    std::size_t weights = 0, biases = 0;    // how many
    bool reads_rounded = false, makes_rounded = false;  // its weights; what it makes
    bool of_loss = false;                               // a loss, or made of losses alone
  };
  void prepare();
  Crossing crossing_at(std::size_t cut);
  void find_weights(std::size_t i);
  void find_rounded();
  void sum_gradients(std::size_t i, std::span<T> gradients) const;
  void set_parameters(std::span<const T> values);
  void run(std::size_t at);
  void use_batch(std::int64_t samples);
  void set_data(std::size_t layer);
  void round_weights(Prepared& p);
  void round_results(const Action& action);

  std::size_t place_of(LayerId layer) const { return index(rank_.made[index(layer)]); }

  RuntimeOptions options_;
  MeteredGroups groups_;
  RankModel rank_;
  LayerSpan part_;
  ParameterLayout layout_;
  Schedule schedule_;
  ActionHooks hooks_;
  std::map<LayerId, ExpertTraffic> traffic_;  // by scores of experts that ranks share
  std::vector<RunnerPtr<T>> runners_;
  std::vector<Prepared> prepared_;
  std::vector<std::size_t> input_of_, target_of_;  // by layer: which of the batch's spans
  std::vector<ParameterRange> trained_range_;      // by layer
  AlignedBuffer<T> memory_, scratch_;
  AlignedBuffer<T> rounded_;   // weights of the layer in work
  std::span<const T> values_;  // of the pass in work
  BatchView batch_;
  std::int64_t samples_;  // of the pass in work
  PassState pass_;
};

}  // namespace reckon
