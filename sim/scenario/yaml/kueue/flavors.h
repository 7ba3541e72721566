#pragma once
#include <vector>

#include "sim/scenario/yaml/fields.h"

// Inside the reader: flavors of ClusterQueues and Cohorts, with their quotas.
namespace reckon {

inline constexpr double kMostQuota = 1e6;  // GPUs

std::vector<const FieldInfo*> flavor_infos();
/// A flavor with several resources comes once for each.
std::vector<KueueFlavorSpec> read_flavor_list(Reader& reader, const YamlNode& node);

}  // namespace reckon
