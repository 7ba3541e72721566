#include "executor/train/recipe/schedule.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "sim/model/counts.h"
#include "sim/model/layer_graph.h"

namespace reckon {
namespace {

using Kind = Action::Kind;

bool reads_inputs(const Layer& layer) {
  // Those of a mixture of experts ask the scores again which row is whose.
  return keeps_inputs(layer.op, layer.frozen) ||
         std::holds_alternative<SoftmaxCrossEntropy>(layer.op) ||
         std::holds_alternative<ExpertDispatch>(layer.op) ||
         std::holds_alternative<ExpertLinear>(layer.op);
}

/// Layers [first, last) that are computed again together, by their first.
struct Group {
  std::size_t first, last;
};

std::vector<Group> recomputed_groups(const RankModel& model, Recompute recompute, LayerSpan part) {
  std::vector<Group> groups;
  const auto& layers = model.layers;
  for (std::size_t i = part.first; i < part.end;) {
    std::size_t end = i + 1;
    const std::string& group = layers[i].layer.group;
    if (recompute == Recompute::full)
      while (end < part.end && !group.empty() && layers[end].layer.group == group) ++end;
    const bool attention = std::holds_alternative<Attention>(layers[i].layer.op);
    const bool again = recompute == Recompute::full        ? end - i > 1 && end < layers.size()
                       : recompute == Recompute::selective ? attention
                                                           : false;
    if (again) groups.push_back({i, end});
    i = end;
  }
  return groups;
}

class Planner {
 public:
  Planner(const RankModel& model, std::int64_t batch, Recompute recompute, std::int64_t line,
          bool backward, LayerSpan part)
      : layers_(model.layers), batch_(batch), line_(line), part_(part) {
    const std::size_t n = layers_.size();
    schedule_.is_recomputed.assign(n, 0);
    const std::vector<Group> groups = recomputed_groups(model, recompute, part);
    schedule_.group_of.assign(n, 0);
    for (std::size_t g = 0; g < groups.size(); ++g)
      std::fill(schedule_.group_of.begin() + static_cast<std::ptrdiff_t>(groups[g].first),
                schedule_.group_of.begin() + static_cast<std::ptrdiff_t>(groups[g].last), g + 1);
    make_actions(groups, backward);
    schedule_.values.assign(n, {});
    schedule_.recomputed.assign(n, {});
    schedule_.gradients.assign(n, {});
    lives_.resize(3 * n);
    for (std::size_t t = 0; t < schedule_.actions.size(); ++t) note_uses(t);
    note_crossing(model, backward);
    place_all();
  }
  Schedule take() { return std::move(schedule_); }

 private:
  enum Tensor : std::size_t { value = 0, again = 1, gradient = 2 };
  struct Life {
    std::size_t first = std::numeric_limits<std::size_t>::max(), last = 0;
  };

  void make_actions(const std::vector<Group>& groups, bool backward) {
    for (std::size_t i = part_.first; i < part_.end; ++i)
      schedule_.actions.push_back({Kind::forward, i});
    schedule_.forward_count = part_.end - part_.first;
    if (!backward) return;
    std::size_t group = groups.size();
    for (std::size_t i = part_.end; i-- > part_.first;) {
      while (group > 0 && groups[group - 1].first > i) --group;
      if (group > 0 && groups[group - 1].last == i + 1) recompute(groups[group - 1]);
      if (layers_[i].has_backward) schedule_.actions.push_back({Kind::backward, i});
    }
  }

  /// Of a group, only what some backward pass in it reads, or what that is made from.
  void recompute(const Group& group) {
    std::vector<char>& needed = schedule_.is_recomputed;
    const auto need = [&](LayerId id) {
      if (index(id) >= group.first) needed[index(id)] = 1;
    };
    for (std::size_t i = group.last; i-- > group.first;) {
      if (layers_[i].has_backward && keeps_output(layers_[i].layer.op)) needed[i] = 1;
      const bool reads = layers_[i].has_backward && reads_inputs(layers_[i].layer);
      if (reads || needed[i] != 0)
        for (LayerId id : layers_[i].layer.inputs) need(id);
    }
    // An input's data are not at hand any more: the layer's first output is kept.
    for (std::size_t i = group.first; i < group.last; ++i)
      if (std::holds_alternative<InputLayer>(layers_[i].layer.op)) needed[i] = 0;
    for (std::size_t i = group.first; i < group.last; ++i)
      if (needed[i] != 0) schedule_.actions.push_back({Kind::recompute, i});
  }

  void use(Tensor tensor, std::size_t layer, std::size_t time) {
    Life& life = lives_[tensor * layers_.size() + layer];
    life.first = std::min(life.first, time);
    life.last = std::max(life.last, time);
  }
  /// The output of a layer as a backward pass or a recomputation reads it.
  void use_late(std::size_t layer, std::size_t reader, std::size_t time) {
    use(schedule_.reads_recomputed(layer, reader) ? again : value, layer, time);
  }

  void note_uses(std::size_t time) {
    const auto [kind, i] = schedule_.actions[time];
    const Layer& layer = layers_[i].layer;
    if (kind == Kind::forward) {
      use(value, i, time);
      for (LayerId id : layer.inputs) use(value, index(id), time);
      return;
    }
    if (kind == Kind::recompute) {
      use(again, i, time);
      for (LayerId id : layer.inputs) use_late(index(id), i, time);
      return;
    }
    use(gradient, i, time);
    if (keeps_output(layer.op)) use_late(i, i, time);
    for (LayerId id : layer.inputs) {
      if (reads_inputs(layer)) use_late(index(id), i, time);
      if (layers_[index(id)].has_backward) use(gradient, index(id), time);
    }
  }

  /// Tensors that come from another part and go to another are at hand from the first time at which
  /// they may come to the last at which they may go.
  void note_crossing(const RankModel& model, bool backward) {
    const std::size_t forward_end = schedule_.forward_count - 1;
    const std::size_t end = std::max(schedule_.actions.size() - 1, forward_end);
    const std::size_t backward_begin = std::min(schedule_.forward_count, end);
    const auto both_ways = [&](std::size_t layer) {
      return backward && layers_[layer].has_backward;
    };
    for (const std::size_t layer : crossing(model, part_.first)) {
      use(value, layer, 0);
      if (both_ways(layer)) use(gradient, layer, end);
    }
    for (const std::size_t layer : crossing(model, part_.end)) {
      use(value, layer, layer < part_.first ? 0 : forward_end);
      use(value, layer, forward_end);
      if (both_ways(layer)) use(gradient, layer, backward_begin);
    }
  }

  std::int64_t count_of(std::size_t layer) const {
    const std::int64_t count = batch_ * elements(layers_[layer].layer.output);
    return (count + line_ - 1) / line_ * line_;
  }

  /// Greedy by size: each tensor goes to the lowest place that is free for all of its life
  /// [Pisarchyk & Lee 2020, arXiv:2001.03288, "greedy by size for offset calculation"].
  void place_all() {
    std::vector<std::size_t> order;
    for (std::size_t k = 0; k < lives_.size(); ++k)
      if (lives_[k].first <= lives_[k].last) order.push_back(k);
    const std::size_t n = layers_.size();
    std::ranges::stable_sort(order, std::greater<>(),
                             [&](std::size_t k) { return count_of(k % n); });
    std::vector<std::size_t> placed;  // in order of place
    for (const std::size_t k : order) {
      TensorPlace& place = place_of(k);
      place.count = count_of(k % n);
      place.first = lowest_free(k, place.count, placed);
      schedule_.elements = std::max(schedule_.elements, place.first + place.count);
      const auto at = std::ranges::upper_bound(placed, place.first, {},
                                               [&](std::size_t p) { return place_of(p).first; });
      placed.insert(at, k);
    }
  }
  std::int64_t lowest_free(std::size_t k, std::int64_t count,
                           const std::vector<std::size_t>& placed) {
    std::int64_t first = 0;
    for (const std::size_t p : placed) {
      const bool together = lives_[p].first <= lives_[k].last && lives_[k].first <= lives_[p].last;
      if (!together) continue;
      const TensorPlace& other = place_of(p);
      if (first + count <= other.first) break;
      first = std::max(first, other.first + other.count);
    }
    return first;
  }
  TensorPlace& place_of(std::size_t k) {
    const std::size_t n = layers_.size();
    auto& places = k / n == value   ? schedule_.values
                   : k / n == again ? schedule_.recomputed
                                    : schedule_.gradients;
    return places[k % n];
  }

  std::span<const RankLayer> layers_;
  std::int64_t batch_, line_;
  LayerSpan part_;
  Schedule schedule_;
  std::vector<Life> lives_;  // by tensor kind, then layer
};

}  // namespace

std::vector<std::size_t> crossing(const RankModel& model, std::size_t cut) {
  const LayerGraph graph(model.layers.size(), [&](std::size_t i) {
    return std::span<const LayerId>(model.layers[i].layer.inputs);
  });
  std::vector<std::size_t> layers;
  for (std::size_t i = 0; i < cut; ++i) {
    const auto readers = graph.readers(i);
    if (std::any_of(readers.begin(), readers.end(),
                    [&](const auto& edge) { return source(edge, graph.edges()) >= cut; }))
      layers.push_back(i);
  }
  return layers;
}

Schedule make_schedule(const RankModel& model, std::int64_t batch, Recompute recompute,
                       std::int64_t element_line, bool backward, LayerSpan part) {
  return Planner(model, batch, recompute, element_line, backward, part).take();
}

std::vector<std::vector<char>> accumulating_inputs(const RankModel& model) {
  const auto& layers = model.layers;
  std::vector<std::vector<char>> adds(layers.size());
  std::vector<char> written(layers.size());
  for (std::size_t i = layers.size(); i-- > 0;)
    for (const LayerId id : layers[i].layer.inputs) {
      adds[i].push_back(written[index(id)]);
      if (layers[i].has_backward) written[index(id)] = 1;
    }
  return adds;
}

}  // namespace reckon
