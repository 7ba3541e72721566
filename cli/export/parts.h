#pragma once
#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "cli/load/load.h"
#include "cli/options/shared.h"
#include "cli/options/values.h"
#include "cli/parse.h"
#include "cli/run/cluster_options.h"
#include "exchange/frameworks/starters.h"
#include "exchange/infrastructure/infrastructure.h"

// Inside `reckon export`: its options, and the targets that have a file of their own.
namespace reckon::cli {

struct ExportOptions : Files, KubernetesObjects, OutPath, ScenarioChanges, CatalogChoice {
  std::string as;  // of JobShape, ServerKind or Starter, by the target; "": not given
  std::string program;
  int minor = 31, attempt = 1;
  bool with_secret = false;

  std::vector<Option> declared();
};

/// --as as one of a target's words. nullopt: it is not given. Throws UsageError where it is a word
/// of other targets.
template <HasWords E>
std::optional<E> as_one_of(const ExportOptions& options, std::string_view target) {
  if (options.as.empty()) return std::nullopt;
  if (const auto found = from_text<E>(options.as)) return found;
  throw UsageError(fmt::format("--as {} is not a form of export {}: {}", options.as, target,
                               fmt::join(reckon::texts_of<E>(), ", ")));
}

KubernetesExport manifest_of(const ExportOptions& options);
/// To --out, or standard output.
void put_out(const ExportOptions& options, const std::string& text);

/// The configuration of a framework's launcher, what starts it around it with --as; on standard
/// error what it leaves to the training program.
int export_launcher(Framework framework, const ExportOptions& options,
                    const LoadedCatalog& catalog);

/// The node pools for a tool that creates them; on standard error what it does not create.
int export_infrastructure(Infrastructure tool, const ExportOptions& options,
                          const LoadedCatalog& catalog);

}  // namespace reckon::cli
