#pragma once
#include <string>
#include <string_view>

#include "exchange/foreign/imported.h"

namespace reckon {

/// What a manifest leaves open: "" and nullopt where the user says nothing either.
struct ClusterHints {
  std::string accelerator;  // of pods whose selectors do not name it
  std::string machine;      // of their nodes
  std::optional<Provider> provider;
  std::string region;
};

/// A file of manifests with one Job, JobSet, TFJob or PyTorchJob, and StatefulSets of parameter
/// servers beside it: ranks and their roles, image, command, environment, devices, and by the
/// labels of the services (catalogs/labels.yaml) provider, place, machine, accelerator and spot.
/// Other documents are named, not imported. Where no machine is named it is the smallest of the
/// catalog that carries what a pod asks for.
Expected<Imported> import_kubernetes_job(std::string_view text, const std::string& file,
                                         const ClusterHints& hints, const Catalog& catalog);

}  // namespace reckon
