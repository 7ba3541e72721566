#pragma once
#include <span>
#include <string>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/model/graph.h"

// Which layers executor/cuda has kernels for: known without a device, and without CUDA.
namespace reckon {

/// Why a device has no runner for this layer, or "".
std::string reason_not_on_device(const Layer& layer, std::span<const Layer> layers);

/// Of a loss that is a sum of losses, each perhaps scaled: by layer what it counts in it, and so do
/// the sums; 0: no part of it.
std::vector<double> loss_weights(const ModelGraph& model);  // factors
/// Is it a loss itself, not a sum of losses?
bool is_device_loss(const LayerOp& op);

/// What a device cannot run of a model, each naming its layer; empty: it runs the model.
Diagnostics cannot_run_on_device(const ModelGraph& model);

}  // namespace reckon
