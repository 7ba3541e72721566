#pragma once
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "executor/kubernetes/kubectl.h"

// What the name of an image tells before a node has it: whether it is one, and the CUDA that it
// needs of the nodes' drivers.
namespace reckon::kubernetes {

/// Why no container runtime takes the name; "": it is well-formed. By the grammar of references
/// [distribution/reference]: [HOST[:PORT]/]PATH[:TAG][@DIGEST], the path in lower-case letters.
std::string image_name_mistake(const std::string& name);

/// The CUDA version that people write into names and tags: "cuda12.4", "cu121", "cuda-11.8.0";
/// nullopt: none is named.
struct CudaVersion {
  int major = 0;
  std::optional<int> minor;
};
std::optional<CudaVersion> cuda_of(const std::string& image);

/// The images of a list of manifests' Jobs, each once.
std::set<std::string> images_of(const std::vector<Json>& manifests);

/// Of nodes that could hold the job's pods: those on whose driver the image cannot run, as a
/// sentence each for all that say the same. By the labels of NVIDIA's GPU feature discovery
/// (nvidia.com/cuda.runtime.major and cuda.runtime-version.major: the newest CUDA of the driver;
/// programs of a newer major version do not start on it, of a newer minor version they do
/// [NVIDIA, "CUDA compatibility"]) and of GKE (gke-gpu-driver-version: disabled, none is there).
struct DriverMisfits {
  int nodes = 0;                      // that cannot run it
  std::vector<std::string> problems;  // why
};
DriverMisfits driver_misfits(const std::string& image, const std::vector<std::string>& names,
                             const Json& nodes);

}  // namespace reckon::kubernetes
