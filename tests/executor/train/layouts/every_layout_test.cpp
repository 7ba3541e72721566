#include <catch2/catch.hpp>

#include "executor/train/layout_checks.h"
#include "executor/train/parallel_networks.h"

// All layouts of eight ranks, of every family: label long. The tests beside it have a sample of
// each kind in `make test`.
using namespace reckon;
using namespace reckon::test;

namespace {

struct LayoutFamily {
  std::string name;
  ModelGraph model;
  int heads = 1, experts = 1, stages = 1;  // that may share it out, at most
  bool causal = true;                      // else context ranks are refused
  std::int64_t batch = 16;
};

/// What ranks may share of a network: its heads, its tokens and its experts, its blocks.
std::vector<Layout> layouts_of_eight(const LayoutFamily& family) {
  constexpr std::array kDegrees{1, 2, 4, 8};
  const bool sequences = family.heads > 1 && family.causal;
  std::vector<Layout> products;
  for (const int data : kDegrees)
    for (const int tensor : kDegrees)
      for (const int context : kDegrees)
        for (const int pipeline : kDegrees) {
          if (data * tensor * context * pipeline != 8 || tensor > family.heads ||
              pipeline > family.stages || (context > 1 && !sequences))
            continue;
          products.push_back(product_of(data, tensor, context, pipeline));
          if (tensor == 1) continue;
          products.push_back(products.back());
          products.back().sequence_parallel = false;
        }
  std::vector<Layout> all;
  for (const Layout& product : products)
    for (int zero = 0; zero <= (product.data * product.context > 1 ? 3 : 0); ++zero)
      for (int expert = 1; expert <= family.experts && product.data % expert == 0; expert *= 2) {
        Layout layout = product;
        layout.zero_stage = zero;
        layout.expert = expert;
        all.push_back(layout);
        if (layout.pipeline == 1) continue;
        layout.schedule = PipelineSchedule::gpipe;
        all.push_back(layout);
        const std::int64_t passes = family.batch / layout.data;  // of one sample
        if (2 * layout.pipeline > family.stages || passes % layout.pipeline != 0) continue;
        layout.schedule = PipelineSchedule::interleaved;
        layout.interleave = 2;
        all.push_back(layout);
      }
  return all;
}

/// Passes are as large as leaves interleaved stages enough of them; batch norms see the same ones
/// everywhere.
void check_family(const LayoutFamily& family) {
  for (const Optimizer optimizer : {Optimizer::sgd_momentum, Optimizer::adamw}) {
    const auto job = layout_job(family.model, optimizer, family.batch);
    std::map<int, TrainedLayout> alone;
    for (const int batch : {1, 2}) alone[batch] = train_layout(under(job, {}, batch));
    int number = 0;
    for (const Layout& layout : layouts_of_eight(family)) {
      INFO(family.name);
      const bool for_adamw = number++ % 2 == 1;  // each layout has one of both
      if (for_adamw != (optimizer == Optimizer::adamw)) continue;
      const std::int64_t own = family.batch / layout.data;
      const bool uneven =
          layout.schedule == PipelineSchedule::interleaved && (own / 2) % layout.pipeline != 0;
      const int batch = uneven ? 1 : 2;
      check_layout(job, alone.at(batch), layout, batch, number % 4 < 2);
    }
  }
}

}  // namespace

TEST_CASE("every layout of eight ranks trains a GPT as one rank does", "[.long]") {
  check_family({.name = "gpt", .model = parallel_gpt2(4, 8), .heads = 4, .stages = 8});
}
TEST_CASE("every layout of eight ranks trains a Llama as one rank does", "[.long]") {
  check_family({.name = "llama", .model = parallel_llama(2, 8), .heads = 2, .stages = 8});
}
TEST_CASE("every layout of eight ranks trains a BERT as one rank does", "[.long]") {
  check_family(
      {.name = "bert", .model = parallel_bert(8), .heads = 4, .stages = 8, .causal = false});
}
TEST_CASE("every layout of eight ranks trains a mixture of experts as one rank does", "[.long]") {
  check_family({.name = "mixture",
                .model = parallel_mixture(true, 8),
                .heads = 4,
                .experts = 4,
                .stages = 8});
}
TEST_CASE("every layout of eight ranks trains a ResNet as one rank does", "[.long]") {
  check_family({.name = "resnet", .model = small_resnet(), .stages = 2});
}
