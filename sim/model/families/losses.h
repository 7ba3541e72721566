#pragma once
#include "sim/model/families/rules.h"

// Losses: 3 operations for each element of the input.
namespace reckon::family {

constexpr double kSquareFlops = 3;  // an element: difference, square, sum

/// Writes its log-softmax, which it keeps, in fp32 whatever the precision, and converts what goes
/// in and its gradient [PyTorch, torch.amp, "CUDA Ops that can autocast to float32": log_softmax].
template <>
struct Rules<SoftmaxCrossEntropy> : OneInput, NoWeights, SavesNothing, Trained {
  static constexpr std::string_view name = "SoftmaxCrossEntropy";
  static LayerOp read(A& a) {
    a.no_main();
    return SoftmaxCrossEntropy{a.number("classes", a.features())};
  }
  static constexpr Kind kind{{"softmax_cross_entropy", "{softmax_cross_entropy: true}"}, read};

  static Checked check(const SoftmaxCrossEntropy& s) {
    return check_sizes({{"classes", s.classes}});
  }
  static Result shape(const SoftmaxCrossEntropy& s, Inputs in, const Shape&) {
    if (in[0]->size() > 2 || in[0]->back() != s.classes) {
      return error(
          fmt::format("takes ({0}) or (T, {0}), its input is {1}", s.classes, to_text(*in[0])));
    }
    return Shape{1};
  }
  static LayerCount count(const SoftmaxCrossEntropy&, Inputs in, const Shape&, Where) {
    LayerCount c = element_wise(in, *in[0], kSoftmaxFlops);
    c.in_fp32 = true;
    c.saved_fixed = kStatistic * size(*in[0]);
    return c;
  }
  static SplitRule split(const SoftmaxCrossEntropy&) { return SplitRule::sums_up; }
};

/// A loss of the elements by themselves.
struct ElementLoss : OneInput, NoAttributes, NoWeights, SavesInputs, NeedsAllFeatures, Trained {
  static Result shape(const auto&, Inputs in, const Shape&) {
    if (in[0]->size() <= 2) return Shape{1};
    return not_taken("(n) or (T, n)", *in[0]);
  }
};

template <>
struct Rules<SigmoidCrossEntropy> : ElementLoss {
  static constexpr std::string_view name = "SigmoidCrossEntropy";
  static constexpr Kind kind{{"sigmoid_cross_entropy", "{sigmoid_cross_entropy: true}"},
                             plain<SigmoidCrossEntropy>};
  static LayerCount count(const SigmoidCrossEntropy&, Inputs in, const Shape&, Where) {
    return element_wise(in, *in[0], kSoftmaxFlops);
  }
};

template <>
struct Rules<MeanSquaredError> : ElementLoss {
  static constexpr std::string_view name = "MeanSquaredError";
  static constexpr Kind kind{{"mean_squared_error", "{mean_squared_error: true}"},
                             plain<MeanSquaredError>};
  static LayerCount count(const MeanSquaredError&, Inputs in, const Shape&, Where) {
    return element_wise(in, *in[0], kSquareFlops);
  }
};

}  // namespace reckon::family
