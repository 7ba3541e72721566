#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/model/graph.h"

namespace reckon {

/// Appends layers and hands out their ids, so that a builder reads like the network's forward
/// function.
class LayerList {
 public:
  explicit LayerList(std::size_t expected_layers) { layers_.reserve(expected_layers); }

  /// Of the layers that follow: none is trained; no batch norm is.
  void freeze(bool all, bool norms) {
    freeze_all_ = all;
    freeze_norms_ = norms;
  }

  /// The group of the layers that follow.
  void set_group(std::string group) { group_ = std::move(group); }

  LayerId add(std::string name, LayerOp op, std::vector<LayerId> inputs) {
    const LayerId id{static_cast<std::uint32_t>(layers_.size())};
    const bool is_norm = std::holds_alternative<BatchNorm>(op);
    layers_.push_back({.id = id,
                       .name = std::move(name),
                       .group = group_,
                       .op = op,
                       .inputs = std::move(inputs),
                       .frozen = freeze_all_ || (freeze_norms_ && is_norm)});
    return id;
  }
  LayerId add(std::string name, LayerOp op, LayerId input) {
    return add(std::move(name), op, std::vector<LayerId>{input});
  }
  /// As add(); the weight matrix is that of `owner`.
  LayerId add_tied(std::string name, LayerOp op, LayerId input, LayerId owner) {
    const LayerId id = add(std::move(name), op, input);
    layers_.back().tied_to = owner;
    return id;
  }

  /// As add(); its weights are not trained.
  LayerId add_frozen(std::string name, LayerOp op, std::vector<LayerId> inputs,
                     std::optional<LayerId> tied_to) {
    const LayerId id = add(std::move(name), op, std::move(inputs));
    layers_.back().tied_to = tied_to;
    layers_.back().frozen = true;
    return id;
  }

  std::vector<Layer> take() { return std::move(layers_); }

 private:
  std::vector<Layer> layers_;
  std::string group_;
  bool freeze_all_ = false, freeze_norms_ = false;
};

}  // namespace reckon
