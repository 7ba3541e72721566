#pragma once
#include <string>

#include "exchange/foreign/imported.h"
#include "exchange/foreign/kubernetes_jobs.h"
#include "exchange/foreign/resnet_work.h"
#include "support/scenario_text.h"

// The scenario of an import, or its errors.
namespace reckon::test {

inline std::string text_of(const Expected<Imported>& found) {
  if (!found) return format(found.error());
  const auto text = scenario_of(*found, kResNet50, shipped_catalog());
  return text ? *text : format(text.error());
}

inline std::string kubernetes(const std::string& yaml, const ClusterHints& hints = {}) {
  return text_of(import_kubernetes_job(yaml, "job.yaml", hints, shipped_catalog()));
}

}  // namespace reckon::test
