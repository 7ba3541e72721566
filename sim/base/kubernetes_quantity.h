#pragma once
#include <optional>
#include <string_view>

namespace reckon {

/// "500m", "2", "1536Mi", "1e3" [Kubernetes API reference, "Quantity"]; nullopt: none.
/// Its suffix taken in: cores, bytes or a count, by resource.
std::optional<double> kubernetes_quantity(std::string_view text);

/// Is the resource of a pod an accelerator that queues count as a GPU? Those of device plugins that
/// end in "/gpu" (nvidia.com, amd.com), and google.com/tpu.
bool counts_as_gpu(std::string_view resource);

}  // namespace reckon
