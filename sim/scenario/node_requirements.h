#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/catalog/catalog.h"
#include "sim/scenario/spec/karpenter.h"

// Labels of the nodes that Karpenter makes, and the requirements of NodePools on them.
namespace reckon {

/// A machine as Karpenter could launch it.
struct NodeChoice {
  const Machine& machine;
  const Accelerator* accelerator = nullptr;  // built in; nullptr: none
  CapacityType capacity = CapacityType::on_demand;
  std::string region, zone;  // "": not known
};

/// The keys that requirements may have, `prefix` being the provider's ("karpenter.k8s.aws")
/// [karpenter.sh, "Scheduling", "Well-Known Labels"].
std::vector<std::string> label_keys(const std::string& prefix);
/// The value of a key of label_keys(); nullopt: such a node has not got the label. Family,
/// category, generation and size are read from the machine's name, as EC2 names machines:
/// g4dn.2xlarge is of family g4dn, category g, generation 4, size 2xlarge.
std::optional<std::string> label_of(const NodeChoice& node, const std::string& key,
                                    const std::string& prefix);

/// Does a label's value meet the requirement? NotIn is met by a missing label, too
/// [kubernetes.io, "Assigning Pods to Nodes", "Operators"].
bool meets(const NodeRequirement& requirement, const std::optional<std::string>& value);
/// The first requirement that the node does not meet; nullptr: it meets all.
const NodeRequirement* unmet(const std::vector<NodeRequirement>& requirements,
                             const NodeChoice& node, const std::string& prefix);
/// The first requirement whose minValues these nodes do not meet: so many different values of its
/// label among them [karpenter.sh, "NodePools", "Min Values"; SatisfiesMinValues() in
/// kubernetes-sigs/karpenter pkg/cloudprovider/types.go]; nullptr: they meet all.
const NodeRequirement* too_few_values(const std::vector<NodeRequirement>& requirements,
                                      std::span<const NodeChoice> nodes, const std::string& prefix);
/// "karpenter.sh/capacity-type In [spot, on-demand]".
std::string to_text(const NodeRequirement& requirement);

}  // namespace reckon
