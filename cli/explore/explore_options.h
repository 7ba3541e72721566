#pragma once
#include <string>
#include <vector>

#include "cli/options/shared.h"

namespace reckon::cli {

struct ExploreOptions : Files,
                        AnswerFormat,
                        Sampling,
                        ScenarioChanges,
                        NetworkChoice,
                        CatalogChoice {
  int port = 0;        // 0: any free one
  bool print = false;  // the controls instead of a page
  int quick = 100;     // replications while controls move
  std::vector<Option> declared();
  /// Throws UsageError.
  void check() const;
  const std::string& file() const { return files.front(); }
};

}  // namespace reckon::cli
