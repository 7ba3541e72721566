#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "executor/train/gradient_cases.h"
#include "executor/train/networks.h"

using namespace reckon;
using test::all_gradient_cases;
using test::GradientCase;
using test::Trial;

namespace {

/// Largest difference between backward() and central differences, relative to the largest gradient
/// of the tensor it is in.
double largest_gradient_error(Trial<double>& trial) {
  constexpr double kStep = 1e-5;
  trial.loss();
  trial.backward();
  double worst = 0;
  for (const ParameterSlot& slot : trial.runtime.layout().slots) {
    double largest = 1e-3;  // of gradients that are all zero
    for (std::size_t i = slot.first; i < slot.first + slot.count; ++i)
      largest = std::max(largest, std::abs(trial.gradients.data()[i]));
    const std::size_t stride = 1 + slot.count / 24;
    for (std::size_t i = slot.first; i < slot.first + slot.count; i += stride) {
      double& value = trial.values.data()[i];
      const double kept = value;
      value = kept + kStep;
      const double above = trial.loss();
      value = kept - kStep;
      const double below = trial.loss();
      value = kept;
      const double slope = slot.trained ? (above - below) / (2 * kStep) : 0;
      worst = std::max(worst, std::abs(trial.gradients.data()[i] - slope) / largest);
    }
  }
  return worst;
}

}  // namespace

TEST_CASE("gradients match finite differences for every kind of layer") {
  for (const GradientCase& test : all_gradient_cases()) {
    INFO(test.name);
    const ModelGraph model = test.make();
    Trial<double> trial(model, 3);
    CHECK(largest_gradient_error(trial) < 2e-6);
    double sum = 0;
    for (const double g : trial.gradients.span()) sum += std::abs(g);
    CHECK(sum > 1e-3);  // there was something to compare
  }
}

template <std::size_t... I>
std::size_t trained_kinds(std::index_sequence<I...>) {
  return ((only_simulated(LayerOp{std::in_place_index<I>}) ? 0u : 1u) + ...);
}

TEST_CASE("the gradient tests leave no kind of layer out that is trained") {
  std::set<std::size_t> kinds;
  for (const GradientCase& test : all_gradient_cases()) {
    const ModelGraph model = test.make();
    for (const Layer& layer : model.layers()) kinds.insert(layer.op.index());
  }
  CHECK(kinds.size() == trained_kinds(std::make_index_sequence<std::variant_size_v<LayerOp>>{}));
}

TEST_CASE("a part of a batch is answered as in the whole, in a forward pass' memory") {
  for (const GradientCase& test : all_gradient_cases()) {
    INFO(test.name);
    const ModelGraph model = test.make();
    constexpr std::int64_t kBatch = 3;
    Trial<double> whole(model, kBatch);
    const double loss = whole.runtime.forward(whole.data.view(), whole.values.span(), {}, false);
    const auto loss_layer = std::ranges::find_if(model.layers(), [](const Layer& layer) {
      return std::holds_alternative<SoftmaxCrossEntropy>(layer.op) ||
             std::holds_alternative<SigmoidCrossEntropy>(layer.op) ||
             std::holds_alternative<MeanSquaredError>(layer.op);
    });
    REQUIRE(loss_layer != model.layers().end());
    const LayerId answer = loss_layer->inputs.front();
    const auto kept = whole.runtime.output(answer);
    const std::vector<double> wanted(kept.begin(), kept.end());
    GraphRuntime<double> forward(model, {.batch = kBatch, .trains = false}, whole.workers);
    CHECK(forward.activation_memory().v <= whole.runtime.activation_memory().v);
    for (const std::int64_t samples : {1, 3, 2, 1}) {
      const auto got = forward.predict(whole.data.view(), samples, whole.values.span(), answer);
      REQUIRE(got.size() * kBatch == wanted.size() * std::size_t(samples));
      for (std::size_t i = 0; i < got.size(); ++i)
        CHECK(got[i] == Approx(wanted[i]).epsilon(1e-9).margin(1e-12));
    }
    CHECK(forward.forward(whole.data.view(), whole.values.span(), {}, false) == Approx(loss));
  }
}

TEST_CASE("recomputed activations give the same bits as kept ones") {
  for (const GradientCase& test : all_gradient_cases()) {
    INFO(test.name);
    const ModelGraph model = test.make();
    Trial<float> kept(model, 3);
    const double loss = kept.loss();
    kept.backward();
    for (const Recompute mode : {Recompute::selective, Recompute::full}) {
      Trial<float> again(model, 3, mode);
      CHECK(again.loss() == loss);
      again.backward();
      CHECK(std::ranges::equal(again.gradients.span(), kept.gradients.span()));
    }
  }
}

TEST_CASE("the number of threads changes no bit") {
  for (const GradientCase& test : all_gradient_cases()) {
    INFO(test.name);
    const ModelGraph model = test.make();
    Trial<float> one(model, 5), three(model, 5, Recompute::none, 3);
    CHECK(one.loss() == three.loss());
    one.backward();
    three.backward();
    CHECK(std::ranges::equal(one.gradients.span(), three.gradients.span()));
  }
}
