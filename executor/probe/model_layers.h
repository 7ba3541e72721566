#pragma once
#include <cstdint>
#include <vector>

#include "executor/train/layers/layer_runner.h"
#include "sim/measurement/probe_record.h"
#include "sim/model/graph.h"

// Which layers of a model are worth measuring one by one, on a CPU or on a device.
namespace reckon {

/// A layer to measure, for all of its shape. The record has what does not depend on the device:
/// kind, item, m, n, k, flops, samples.
struct ProbedLayer {
  ProbeRecord record;
  const Layer* layer = nullptr;
  LayerGeometry geometry;
};

struct LayerLimits {
  Flops flops{};        // of one forward pass: what would take too long is left out
  double elements = 0;  // numbers in its tensors, weights and batch together
  int most = 4;         // shapes of a kind
};

/// The convolutions and attentions of `model`, which must outlive the answer, and its linear layers
/// as matrix products: of each kind the shapes with the largest share of the FLOPs, that share
/// first.
std::vector<ProbedLayer> layers_to_probe(const ModelGraph& model, std::int64_t batch,
                                         const LayerLimits& limits);

bool has_bias(const Layer& layer);
/// Elements of the weights that it reads; tied ones are another layer's.
std::int64_t weights_of(const ModelGraph& model, const ProbedLayer& layer);

}  // namespace reckon
