#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/diagnostic.h"
#include "sim/catalog/catalog.h"

namespace reckon {

/// The scenario that `reckon export kubernetes` put into these manifests (the ConfigMap that its
/// pods mount), under two lines of comment; that is the one from which they were made, whole.
/// nullopt: there is none, it was exported with --set, or the manifests' ranks, image or command
/// are no longer those of its plan; what they say themselves is then the truth
/// (import_kubernetes_job). Errors are those of the manifests.
Expected<std::optional<std::string>> exported_plan_of(std::string_view text,
                                                      const std::string& file,
                                                      const Catalog& catalog);

}  // namespace reckon
