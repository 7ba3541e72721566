#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/options/shared.h"

namespace reckon::cli {

struct PlanOptions : Files, AnswerFormat, OutPath, Sampling, ScenarioChanges, CatalogChoice {
  // The question without a file; "": not said.
  std::string model, tokens, epochs, dataset, finetune, sequence;
  /// What options say in the scenario's `plan:` block, as words of --set.
  std::vector<std::string> plan_block;
  bool layouts = false;
  std::string global_batch;  // "N", or "1..N": free up to so many
  std::string quota;         // as a word of --set; "": none
  std::string precision;     // "any", or one
  std::optional<int> plans;  // to show
  bool fewest = false;
  std::string limit, pool;         // of jobs that share a cluster; "": not said
  std::vector<std::string> tries;  // with limit: changes, as words of --set joined by " and "
  std::string memo, svg, diff;     // files to write; "": none
  std::string baseline;            // a file to read
  std::optional<double> tolerance;
  bool lock = false;

  std::vector<Option> declared();
  /// Throws UsageError where options contradict each other, or two files are one.
  void check() const;
};

}  // namespace reckon::cli
