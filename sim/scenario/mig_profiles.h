#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// MIG instances that one GPU can be cut into [NVIDIA, MIG User Guide, "Supported MIG Profiles"].
namespace reckon {

/// "3g.40gb" or "1g.10gb+me" of a GPU.
struct MigProfile {
  int slices = 1;  // of its compute slices
  int memory = 1;  // of its memory slices
  /// Memory slices at which an instance may begin, as `nvidia-smi mig -lgipp` lists them.
  std::vector<int> starts{};
};

/// The profile of that name on an accelerator of the catalog's or a cloud's name
/// ("A100-SXM4-80"). nullopt: it has none. An A30 has 4 slices of each, other GPUs 7 of compute and
/// 8 of memory. The name of the accelerator ends with its GB, of which the profile's are whole
/// slices, rounded; where it does not, the smallest with that many compute slices is meant.
std::optional<MigProfile> mig_profile(std::string_view name, std::string_view accelerator);
/// All names of such profiles on the accelerator, with its GB where its name says them.
std::vector<std::string> mig_profile_names(std::string_view accelerator);

/// Why one GPU cannot have all of these instances at once, by profile; nullopt: it can. Instances
/// do not overlap, and only one has media extensions (+me).
std::optional<std::string> mig_mistake(const std::map<std::string, int>& instances,
                                       std::string_view accelerator);

}  // namespace reckon
