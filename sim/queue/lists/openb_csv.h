#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/queue/packing/pods.h"

// The two lists of Alibaba's cluster-trace-gpu-v2023 ("openb").
namespace reckon {

/// sn,cpu_milli,memory_mib,gpu,model. Errors: no GPU at all, over 16 GPUs of a node, over 64
/// models, an empty list; each with its line.
Expected<std::vector<GpuNode>> read_openb_nodes(const std::string& file, std::string_view bytes);

/// name,cpu_milli,memory_mib,num_gpu,gpu_milli and, if there, gpu_spec ("V100M16|V100M32"); other
/// columns are not read. In order of their names, as the simulator of the list sorts them. A
/// gpu_milli above 1000 is a whole GPU, as data/pod_csv_to_yaml.py has it. Errors: a share of
/// several GPUs, a GPU without a share, an empty list; each with its line.
Expected<std::vector<PodRequest>> read_openb_pods(const std::string& file, std::string_view bytes);

}  // namespace reckon
