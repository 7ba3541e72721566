#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "sim/accuracy/published_runs.h"
#include "sim/scenario/plan.h"

// A published run as the Plan that `reckon simulate` would make of it: the same scenario, the same
// checks. Only what rows of measurements leave open is settled here, and said where.
namespace reckon {

/// The error says in a few words why this run cannot be planned; equal reasons have equal words, so
/// that they can be counted.
tl::expected<Plan, std::string> plan_of_run(const RunConfiguration& run, const Catalog& catalog);

/// What a scenario would say of the model.
struct RunModel {
  ModelSpec spec;
  std::optional<Finetune> finetune;
  std::optional<std::int64_t> sequence_length;
  /// Tokens of a sample, as sources count them that print tokens a second; 0: not known.
  double tokens = 0;
  /// Rows print its batch in tokens, not in samples.
  bool batch_in_tokens = false;
};
/// The error as above. Dimensions of a row that do not give its printed number of parameters within
/// 10 % describe another network than the one that ran.
tl::expected<RunModel, std::string> model_of_run(const RunConfiguration& run);

/// Tokens of one sample of the run, as its source counts them (RunModel::tokens); 0: not known.
double tokens_of_run(const RunConfiguration& run);

/// The precision that the run computed in. Where it is not printed, the row's guess: "16" is bf16
/// for language models on hardware that has it (Ampere and later: all published recipes), else
/// fp16, and bf16 on TPUs.
tl::expected<Precision, std::string> precision_of_run(const RunConfiguration& run,
                                                      const Accelerator& accelerator);

}  // namespace reckon
