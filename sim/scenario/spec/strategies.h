#pragma once
#include <algorithm>
#include <array>
#include <string_view>

#include "sim/base/words.h"

// The words of the scenario for strategies, and all that follows from the word alone.
namespace reckon {

enum class StrategyKind {
  single,
  mirrored,
  multi_worker_mirrored,
  parameter_server,
  tpu,
  sharded,
  model_parallel
};
constexpr auto words_of(StrategyKind) {
  return std::array{
      Word<StrategyKind>{"single", StrategyKind::single},
      Word<StrategyKind>{"mirrored", StrategyKind::mirrored},
      Word<StrategyKind>{"multi_worker_mirrored", StrategyKind::multi_worker_mirrored},
      Word<StrategyKind>{"parameter_server", StrategyKind::parameter_server},
      Word<StrategyKind>{"tpu", StrategyKind::tpu},
      Word<StrategyKind>{"sharded", StrategyKind::sharded},
      Word<StrategyKind>{"model_parallel", StrategyKind::model_parallel}};
}

/// What a word for a strategy stands for. What is planned, timed and trained is a Layout and, where
/// there are some, ParameterServers; the word is for what is read and printed, and for TF_CONFIG.
struct StrategyTraits {
  StrategyKind kind;
  std::string_view native{};  // what the layout is called without a framework; "": nothing else
  bool cuts = false;          // the model or its state is cut: a rank holds what the layout says
  bool any_degrees = false;   // the scenario says data, tensor, pipeline, context, expert degrees
  bool gang = false;          // several workers, each of which waits for all others
  bool servers = false;       // parameter servers hold the variables
  bool on_machines = true;    // runs on machines
  bool on_slices = false;     // runs on a TPU slice
  bool accelerated = false;   // needs accelerators
  bool one_each = false;      // a worker has one accelerator where nothing else is said
  int least_zero_stage = 0;   // of those that make sense
  int usual_zero_stage = 0;   // where none is said
  bool stops_recomputing = false;  // Layout::stops_recomputing
  bool overlaps = true;            // Layout::overlap, where nothing else is said
  bool fp32_variables = false;     // variables stay in fp32 whatever the precision

  /// One process computes, on whichever machine.
  constexpr bool one_worker() const { return on_machines && !gang && !servers; }
  /// Every accelerator has all of the model, and gradients are all that they share.
  constexpr bool data_parallel() const { return !cuts && !servers; }
};
/// In the order in which a search tries them.
inline constexpr std::array kStrategies{
    StrategyTraits{.kind = StrategyKind::single, .one_each = true},
    StrategyTraits{.kind = StrategyKind::mirrored, .accelerated = true},
    StrategyTraits{
        .kind = StrategyKind::multi_worker_mirrored, .native = "data_parallel", .gang = true},
    // XLA on TPU sums all gradients after the backward pass [Kumar et al. 2019, Sec. 2.2].
    StrategyTraits{.kind = StrategyKind::tpu,
                   .on_machines = false,
                   .on_slices = true,
                   .overlaps = false,
                   .fp32_variables = true},
    StrategyTraits{.kind = StrategyKind::sharded,
                   .native = "zero",
                   .cuts = true,
                   .gang = true,
                   .on_slices = true,
                   .least_zero_stage = 1,
                   .usual_zero_stage = 3,
                   .stops_recomputing = true},
    StrategyTraits{.kind = StrategyKind::parameter_server,
                   .servers = true,
                   .one_each = true,
                   .fp32_variables = true},
    StrategyTraits{.kind = StrategyKind::model_parallel,
                   .native = "hybrid",
                   .cuts = true,
                   .any_degrees = true,
                   .gang = true,
                   .on_slices = true}};
constexpr const StrategyTraits& traits_of(StrategyKind kind) {
  for (const StrategyTraits& strategy : kStrategies)
    if (strategy.kind == kind) return strategy;
  return kStrategies.front();  // never: each word has a row
}
static_assert(std::ranges::all_of(words_of(StrategyKind{}), [](const Word<StrategyKind>& word) {
  return traits_of(word.value).kind == word.value;
}));

}  // namespace reckon
