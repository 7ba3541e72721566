#pragma once
#include "sim/scenario/layout.h"
#include "sim/step/compute.h"
#include "sim/step/memory/folded_model.h"

// One rank's share of a layer under a layout (docs/MODELS.md, "Layouts"). t tensor ranks, c context
// ranks, e expert ranks.
//  - Products cut by columns or rows, and what works on split features: 1/t of the arithmetic and
//    of the weights [Shoeybi et al. 2019, Sec. 3].
//  - What is whole: all of it on every rank; with sequence parallelism 1/t of the tokens, so 1/t of
//    its time and of what it saves [Korthikanti et al. 2022, Sec. 4.2].
//  - Every token's work and everything saved: 1/c (attention: its queries against all keys).
//  - Experts: 1/e of the weights. Rows stay as many, because e ranks' tokens meet 1/e of the
//    experts; the busiest rank has `imbalance` times the mean.
namespace reckon {

/// What stays the same for all layers.
struct LayoutShares {
  LayoutShares(const Layout& layout, double expert_imbalance);
  double tokens = 1;     // of a tensor that is whole: 1/c, with sequence parallelism 1/(c t)
  double whole = 1;      // of a tensor that is whole and gathered: 1/c
  double split = 1;      // of a tensor split along its features: 1/(c t)
  double matrix = 1;     // of a cut weight matrix: 1/t
  double expert = 1;     // of the experts of a layer: 1/e
  double imbalance = 1;  // factor: rows of the busiest expert rank over the mean
};

/// For one sample.
LayerWork work_of(const LayerClass& layer, const LayoutShares& s);

/// What one rank keeps of a layer, before ZeRO.
struct LayerState {
  double parameters = 0, trainable = 0;  // numbers of weights, as `tied`
  bool of_experts = false;               // replicated on fewer ranks than the rest
  double tied = 0;                       // weights of another layer that this one needs
  double saved_elements = 0;             // one sample
  Bytes saved_fixed{};                   // one sample
  double scores = 0;                     // attention's, one sample
  double working_elements = 0;           // gradients of its input and output, one sample
};
LayerState state_of(const LayerClass& layer, const LayoutShares& s);

}  // namespace reckon
