#pragma once
#include <vector>

#include "sim/scenario/yaml/fields.h"

// Inside the reader: AdmissionChecks of `cluster.scheduler.kueue:`, and who names them.
namespace reckon {

std::vector<const FieldInfo*> check_rules_infos();  // of admissionChecksStrategy
void read_check_rules(Reader& reader, const YamlNode& node, ClusterQueueSpec& queue);
const Fields<KueueAdmissionCheckSpec>& admission_check_fields();
/// Names that are not there, and flavors with a topology, which are not simulated with checks.
void check_admission_checks(Reader& reader, const YamlNode& node, const KueueSpec& kueue);

}  // namespace reckon
