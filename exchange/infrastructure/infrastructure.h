#pragma once
#include <array>
#include <string>
#include <vector>

#include "exchange/infrastructure/cloud_cluster.h"
#include "sim/base/diagnostic.h"
#include "sim/base/words.h"
#include "sim/scenario/scenario.h"

// A plan's node pools in the format of a tool that creates them: terraform (GKE, EKS, AKS), eksctl
// and Karpenter (EKS), az (AKS). `gcloud` has a writer of its own (exchange/gcloud.h).
namespace reckon {

enum class Infrastructure { terraform, eksctl, karpenter, aks };
constexpr auto words_of(Infrastructure) {
  return std::array{Word<Infrastructure>{"terraform", Infrastructure::terraform},
                    Word<Infrastructure>{"eksctl", Infrastructure::eksctl},
                    Word<Infrastructure>{"karpenter", Infrastructure::karpenter},
                    Word<Infrastructure>{"aks", Infrastructure::aks}};
}

struct InfrastructureText {
  std::string text;
  std::vector<std::string> left_to_user;  // what the tool does not create: "a bucket for ..."
};

/// The text; or all that the tool has no counterpart for, at its place in the scenario: a service
/// of another cloud, TPUs that are no nodes, names that the service does not allow.
Expected<InfrastructureText> infrastructure_text(Infrastructure tool, const CloudCluster& cluster,
                                                 const Places& places);

}  // namespace reckon
