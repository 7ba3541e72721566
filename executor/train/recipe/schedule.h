#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "executor/train/parallel/rank_model.h"
#include "sim/model/graph.h"
#include "sim/scenario/scenario.h"

// What a step does with a graph, in which order, and where every tensor lies in one piece of
// memory. Made once for a batch size; a step allocates nothing.
namespace reckon {

struct Action {
  enum class Kind { forward, recompute, backward } kind = Kind::forward;
  std::size_t layer = 0;
};

/// Layers before `cut` whose outputs layers from it on read, ascending.
std::vector<std::size_t> crossing(const RankModel& model, std::size_t cut);

/// A tensor's place, in elements from the beginning of the memory.
struct TensorPlace {
  std::int64_t first = -1;  // -1: there is no such tensor
  std::int64_t count = 0;
};

struct Schedule {
  std::vector<Action> actions;                             // forward of all layers, then the rest
  std::size_t forward_count = 0;                           // actions of the forward pass
  std::vector<TensorPlace> values, recomputed, gradients;  // by layer: outputs, and their gradients
  std::vector<char> is_recomputed;                         // by layer: its output is computed again
  std::vector<std::size_t> group_of;  // by layer: layers of one group, not 0, that are recomputed
                                      // together read each other's recomputed outputs
  std::int64_t elements = 0;          // of the memory

  /// After the forward pass, `reader` sees what was computed again of `layer`, not what was kept.
  bool reads_recomputed(std::size_t layer, std::size_t reader) const {
    return is_recomputed[layer] != 0 && group_of[layer] == group_of[reader];
  }
};

/// Recomputation by groups of layers (`Layer::group`, a transformer block): `full` keeps what goes
/// into a group and computes the rest again before the group's backward pass; the last group is
/// kept, its backward pass comes at once. `selective` computes attention again [Korthikanti 2022,
/// arXiv:2205.05198, section 5]. What a layer's backward pass reads is keeps_inputs() and
/// keeps_output() of sim/model/counts.h, the rules by which memory is forecast; beside them
/// the softmax loss reads its input in place of a log-softmax of the same size.
/// `element_line`: places are multiples of so many elements (a cache line). Without `backward` it
/// is the forward pass alone, which keeps a tensor no longer than until its last reader.
///
/// Of a part of the graph, a stage of a pipeline: its actions, and places of its tensors alone.
/// What crosses into it is there before its first action, the gradients of what crosses out of it
/// before its first backward action; what crosses out of it, and the gradients of what crosses into
/// it, are still there at the end of the forward pass and of all.
Schedule make_schedule(const RankModel& model, std::int64_t batch, Recompute recompute,
                       std::int64_t element_line, bool backward, LayerSpan part);
inline Schedule make_schedule(const RankModel& model, std::int64_t batch, Recompute recompute,
                              std::int64_t element_line, bool backward = true) {
  return make_schedule(model, batch, recompute, element_line, backward, all_layers(model));
}

/// Where the tensors of layer `i`, which takes `inputs`, lie in `memory`, schedule.elements of E,
/// on a CPU or a device: into a LayerMemory<E> or a DeviceLayerMemory<E>. `late`: after the forward
/// pass.
template <class Memory, class E>
void point_to_tensors(std::span<const LayerId> inputs, const Schedule& schedule, std::size_t i,
                      bool late, E* memory, Memory& into) {
  const auto at = [&](const TensorPlace& place) {
    return place.first < 0 ? nullptr : memory + place.first;
  };
  const auto value = [&](std::size_t j) {
    return at(late && schedule.reads_recomputed(j, i) ? schedule.recomputed[j]
                                                      : schedule.values[j]);
  };
  for (const LayerId id : inputs) {
    into.inputs.push_back(value(index(id)));
    into.input_gradients.push_back(at(schedule.gradients[index(id)]));
  }
  into.output = value(i);
  into.output_gradient = at(schedule.gradients[i]);
}

/// By layer and input: does its backward pass add to the input's gradient? The first to write to it
/// sets it, the others add.
std::vector<std::vector<char>> accumulating_inputs(const RankModel& model);

}  // namespace reckon
