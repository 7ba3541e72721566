#pragma once
#include <string>

#include "sim/base/fact.h"
#include "sim/base/quantity.h"
#include "sim/catalog/precision.h"

// Facts of the catalog: what software makes of hardware.
namespace reckon {

/// Achieved fraction of peak by kind of work: fitted from measurements (docs/MODELS.md says from
/// which).
struct Efficiency {
  std::string accelerator;  // canonical name, or an architecture ("Pascal")
  Precision precision = Precision::fp32;
  std::string stack;         // software stack ("tf1"), class of stacks ("fused-lm"), "" = any
  Fact<double> convolution;  // of peak FLOP/s, for large layers
  /// Speed of convolutions of 3 x 3 with stride 1 over that of all others: such have algorithms of
  /// 2.25 times fewer multiplications [Lavin and Gray 2016, "Fast algorithms for convolutional
  /// neural networks", CVPR, Sec. 4.1]. 1: no such algorithm.
  Fact<double> winograd{1.0};
  Fact<double> matmul;     // of peak FLOP/s
  Fact<double> attention;  // of peak FLOP/s
  Fact<double> memory;     // of memory bandwidth, 0..1 and above: fused passes
  Fact<Flops> half_size;  // a kernel of so many FLOPs reaches half of that efficiency; 0: size does
                          // not matter
  Fact<Seconds> launch;   // per kernel, not hidden
  Fact<Seconds> host;     // of the host to issue one layer's pass: a step takes no less than all
  Fact<double> step_spread;  // factor on step time: value 1, low..high = 5th..95th percentile of
                             // the fit's residuals
};

/// What a software stack changes on any accelerator, for those on which it was never measured: its
/// speed against the middle of all stacks, and its host. A name with a star in front ("*-mlperf")
/// is a family: all stacks that end so and have no row of their own.
struct SoftwareStack {
  std::string name;    // "tf1", "pytorch-ngc"
  Fact<double> speed;  // factor
  Fact<Seconds> host;  // as Efficiency::host
};
/// Stacks that are built alike: their rows of efficiencies are one, of the class's name, where they
/// have none of their own. `stacks`: one name, or how names begin ("megatron*").
struct StackClass {
  std::string stacks, name;
};
/// What a stack keeps of an accelerator's memory besides the tensors that every framework has.
/// `stacks`: one name, or how names begin.
struct StackMemory {
  std::string stacks;
  Fact<Bytes> reserve;            // gone before the first tensor
  Bytes buffers_per_parameter{};  // of a rank's own parameters
  bool keeps_scores = false;      // attention without a fused kernel: its softmax's output is kept
};
/// A row for any stack, as this stack would have it.
Efficiency with_stack(Efficiency any, const SoftwareStack& stack);

}  // namespace reckon
