#pragma once
#include "sim/scenario/plan.h"
#include "sim/step/optimizer_cost.h"

namespace reckon {

/// Bytes of one element of each thing that training keeps or moves, on one accelerator.
///  - fp32, tf32: everything 4; what the optimizer keeps: optimizer_cost.h.
///  - 16 bits and below: weights and activations in the working precision, gradients in 16 bits
///  (the narrowest
///    that collectives add in), an fp32 master copy of the weights beside the optimizer's fp32
///    state [Micikevicius et al. 2018, "Mixed precision training"; Rajbhandari et al. 2020, "ZeRO",
///    Sec. 3.1: 2 + 2 + 12 bytes a parameter for mixed-precision Adam].
///  - With fp32 gradients they are 4 whatever the weights are: kept, summed and reduced so. bf16 in
///    Megatron-LM [docs/api-guide/dist_optimizer: "bf16 parameters, fp32 gradients", 18 bytes a
///    parameter, 6 + 12 / d with the optimizer's state shared by d ranks].
///  - TPU and parameter servers keep the variables, and move their gradients, in fp32; only
///  activations are in 16
///    bits [Kumar et al. 2019, "Scale MLPerf-0.6 models on Google TPU-v3 Pods", Sec. 2; TF1
///    variables].
///  - On CPUs reckon-worker computes in float. In 16 bits it rounds what a device would hold so as
///    it is stored, to 4 bytes all the same, and has a rounded copy of the weights
///    (executor/train/rounding.h).
///  - On devices reckon-worker keeps, sums and reduces gradients in fp32, gathers the parameters
///  that ZeRO has cut in fp32, and so do tensor ranks with what they exchange (executor/cuda); what
///  goes through pipelines, round the ring of attention and to experts is in 16 bits.
struct ElementSizes {
  Bytes activation{}, weight{}, gradient{};
  Bytes gathered{};   // of a weight that ZeRO's ranks gather
  Bytes exchanged{};  // of an activation between tensor ranks
  Bytes master{};     // 0: the weights are their own master copy
  Bytes optimizer{};  // state beside the master copy
  Bytes update{};     // what the optimizer moves besides, and its products: optimizer_cost.h
  Flops update_flops{};
  Bytes buffers{};      // of the stack beside a parameter: flat copies of gradients, temporaries
  Bytes score{};        // kept of each attention score; 0: a fused kernel computes them again
  bool rounds = false;  // each value that a layer makes is read and written once more

  /// Memory traffic of the optimizer's update for one parameter: gradient read, state and master
  /// read and written, working weight written where it is a copy.
  Bytes update_traffic() const;
};
/// What is in fp32 where the precision is 16 bits or fewer.
enum class WideSums { none, gradients, all };
/// `fp32_variables`: as on TPU and with parameter servers.
ElementSizes element_sizes(Precision precision, const OptimizerCost& optimizer, bool fp32_variables,
                           WideSums wide = WideSums::none, bool on_cpus = false);
/// As the job's stack and its fp32_gradients say.
WideSums wide_sums(const PlannedWorkload& job);
ElementSizes element_sizes(const PlannedWorkload& job);
/// A weight in four bits (Layer::four_bit): NF4, a constant of 8 bits for each 64, and of them one
/// of 32 bits for each 256 [Dettmers 2023, arXiv:2305.14314, section 3, "Double Quantization":
/// 0.127 bits a parameter].
inline constexpr Bytes kFourBitWeight{(4 + 8. / 64 + 32. / (64 * 256)) / 8};
/// Of a pass forward only: weights and activations in the working precision, nothing else.
ElementSizes forward_sizes(Precision precision);
bool fp32_variables(const PlannedStrategy& strategy);
/// With what the stack keeps besides. Attention without a fused kernel and without dropout keeps
/// its softmax's output, of the working precision: 2 a s/h of the 5 a s/h of [Korthikanti et al.
/// 2022, eq. 1], the rest of which is the dropout's.
ElementSizes with_stack(ElementSizes sizes, const FrameworkRules& framework);

}  // namespace reckon
