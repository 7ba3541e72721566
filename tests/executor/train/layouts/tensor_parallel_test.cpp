#include <catch2/catch.hpp>

#include "executor/train/parallel_cases.h"
#include "executor/train/parallel_networks.h"

using namespace reckon;
using test::check_pass;
using test::check_slopes;
using test::check_training;

namespace {

Layout tensor_layout_of(int tensor, bool sequence_parallel = false) {
  Layout layout;
  layout.tensor = tensor;
  layout.sequence_parallel = sequence_parallel;
  return layout;
}

}  // namespace

TEST_CASE("tensor ranks have the loss and the gradients of one rank") {
  for (const test::NamedNetwork& network : test::tensor_parallel_networks())
    for (const int tensor : {2, 4})
      for (const bool sequence_parallel : {false, true}) {
        INFO(network.name);
        check_pass(network.model, tensor_layout_of(tensor, sequence_parallel));
      }
}

TEST_CASE("gradients of sharded layers match finite differences of what the ranks compute") {
  Layout context, experts;
  context.context = 2;
  experts.data = experts.expert = 2;
  check_slopes(test::parallel_gpt2(), tensor_layout_of(2, true));
  check_slopes(test::parallel_llama(2), tensor_layout_of(2));
  check_slopes(test::parallel_llama(2), context);
  check_slopes(test::parallel_mixture(true), experts);
}

TEST_CASE("recomputation changes nothing of what tensor ranks sum") {
  const ModelGraph gpt = test::parallel_gpt2(), llama = test::parallel_llama(2);
  for (const Recompute recompute : {Recompute::full, Recompute::selective})
    for (const bool sequence_parallel : {false, true}) {
      check_pass(gpt, tensor_layout_of(2, sequence_parallel), recompute);
      check_pass(llama, tensor_layout_of(4, sequence_parallel), recompute);
    }
}

TEST_CASE("ten steps of tensor ranks are those of one rank, and the same bits each time") {
  for (const test::NamedNetwork& network : test::tensor_parallel_networks()) {
    INFO(network.name);
    check_training(network.model, tensor_layout_of(2), test::kSgd, test::kSgdBound);
    check_training(network.model, tensor_layout_of(4, true), test::kSgd, test::kSgdBound);
    check_training(network.model, tensor_layout_of(2, true), test::kAdamW, test::kAdamWBound);
    check_training(network.model, tensor_layout_of(4), test::kAdamW, test::kAdamWBound);
  }
}

TEST_CASE("tensor ranks that accumulate micro-batches sum once") {
  const ModelGraph model = test::parallel_llama(2);
  test::StepSettings settings = test::kSgd;
  settings.micro_batches = 4;
  check_training(model, tensor_layout_of(2, true), settings, test::kSgdBound);
}
