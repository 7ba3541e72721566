#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/load/load.h"
#include "cli/options/shared.h"

namespace reckon::cli {

struct ExploreOptions;

/// What the page asks: each answer is the text that a command prints for the file with `words`
/// behind its own --set. Of a loaded catalog; from any thread.
class ExploreAnswers {
 public:
  ExploreAnswers(const ExploreOptions& options, const LoadedCatalog& catalog,
                 const NetworkModel& network);

  using Words = std::vector<std::string>;
  /// `reckon simulate FILE --format json`. Throws WrongInput, UsageError.
  std::string simulate(const Words& words, std::optional<int> replications) const;
  /// `reckon plan FILE --format json`.
  std::string plan(const Words& words) const;
  /// `reckon explore FILE --format json`.
  std::string controls(const Words& words) const;
  std::string controls_as_table() const;
  /// The scenario as a file that says the same without --set and layers.
  std::string scenario(const Words& words) const;

 private:
  ScenarioChanges with(const Words& words) const;

  const ExploreOptions& options_;
  const LoadedCatalog& catalog_;
  const NetworkModel& network_;
};

}  // namespace reckon::cli
