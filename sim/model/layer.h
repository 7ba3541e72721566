#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/quantity.h"
#include "sim/model/layer_kinds.h"

namespace reckon {

/// The kind of work a layer is, as far as efficiency goes (rows of catalogs/efficiencies.csv).
/// memory: bound by bytes (norms, activations, sums).
enum class WorkKind { convolution, matmul, attention, memory };

struct Layer {
  LayerId id{};       // its index; make() sets it
  std::string name;   // "layer1.0.conv2", "transformer.h.3.attn.c_attn"
  std::string group;  // what `explain` sums by: "layer1", "transformer.h.3"; empty: its own
  LayerOp op;
  std::vector<LayerId> inputs;  // earlier layers
  Shape output;                 // of one sample; make() infers it
  /// Shares the weight matrix of that layer (GPT-2's output projection that of its embedding).
  std::optional<LayerId> tied_to;
  /// Its weights are not trained: no gradient of them is made (sim/model/finetune.h).
  bool frozen = false;
  /// Its frozen weights are kept in four bits and made wide for each pass [Dettmers 2023,
  /// arXiv:2305.14314, section 3]. Only simulated.
  bool four_bit = false;
};

/// What one layer costs for ONE sample. The rules are in sim/model/counts.h.
struct LayerCount {
  std::int64_t parameters = 0;         // a tied matrix counts at the layer that owns it
  std::int64_t active_parameters = 0;  // of them, those that one token meets: top_k of the experts
  std::int64_t trainable_parameters = 0;  // of them, those that have a gradient: all, or none
  /// Weights that a pass over a batch reads, once for all its samples; tied ones too. An
  /// embedding's rows are not here: they are read a sample, in elements_in.
  std::int64_t weights_read = 0;
  Flops forward{};   // a multiply-add is two
  Flops backward{};  // what autograd runs
  Flops matrix{};    // of `forward`: convolutions and matrix products alone, as MFU counts them
  Flops model{};     // what MFU counts for forward and backward: see ModelGraph::model_flops()
  double elements_in = 0;   // numbers of activations read in the forward pass, one sample
  double elements_out = 0;  // activations written
  /// Kept for the backward pass (without recomputation), in elements of the compute precision. Each
  /// tensor counts once, at the layer that made it, however many keep it.
  double saved_elements = 0;
  /// Kept besides, of a width that the precision does not change: masks, indices, statistics.
  Bytes saved_fixed{};
  WorkKind work = WorkKind::memory;
  bool has_backward = true;  // it, or something before it, is trained
  bool frozen = false;       // its weights have no gradient
  bool four_bit = false;     // Layer::four_bit
  bool depthwise = false;    // grouped convolution with one channel a group: bound by memory
  /// Convolution of 3 x 3, stride 1, ungrouped: Efficiency::winograd.
  bool small_square = false;
  bool in_fp32 = false;  // whatever the precision, as autocast runs losses over classes
  /// Kernels that wait for each other where others have one: the steps of a recurrence.
  std::int64_t steps = 1;
};

}  // namespace reckon
