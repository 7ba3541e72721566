#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/base/quantity.h"

// Profiles of training that people have, by other tools: the steps in them and what the GPUs did
// meanwhile.
namespace reckon {

inline constexpr std::size_t kLargestProfile = std::size_t{1} << 30U;  // bytes, unpacked

/// What a kernel of a GPU does.
enum class KernelKind { product, attention, communication, memory };
inline constexpr std::size_t kKernelKinds = 4;
/// By its name, as CUDA libraries, PyTorch, FlashAttention and NCCL give them. What has no known
/// name is `memory`: elementwise kernels, norms, reductions, optimizers, copies are all bound by
/// it.
KernelKind kernel_kind(std::string_view name);

/// One kernel or copy on a device, or the time of one step. Nanoseconds of the profile's clock.
struct ProfiledKernel {
  std::int64_t begin = 0, end = 0;
  int device = 0;
  KernelKind kind{};
};
struct ProfiledWindow {
  std::int64_t begin = 0, end = 0;
};

/// What a step's time went to, on average over steps and devices; all but the last add up to it.
/// Where kernels run beside each other the time is the first one's in this order.
struct ProfiledParts {
  Seconds product{}, attention{}, memory{};
  Seconds exposed_communication{};  // no other kernel runs beside it
  Seconds idle{};
  Seconds communication{};  // all of it
  Seconds total() const { return product + attention + memory + exposed_communication + idle; }
};

/// Collectives of one name and size.
struct ProfiledCollective {
  std::string name;  // "allreduce"
  Bytes size{};      // of the input of a rank
  double calls = 0;  // a step
  Seconds time{};    // mean
};

struct Profile {
  std::string tool;           // "PyTorch (Kineto)"
  std::string device;         // its driver's name; "": not said
  int devices = 1;            // with kernels
  int ranks = 0;              // of the job; 0: not said
  std::vector<double> steps;  // seconds, in their order; empty: the file has no step
  ProfiledParts parts;        // a step; of the whole file where it has none
  std::vector<ProfiledCollective> collectives;  // the largest time first
};

/// Steps follow each other: a window ends where the next begins, unless half a step lies between.
/// The windows are sorted and do not overlap afterwards; those within another are dropped.
std::vector<ProfiledWindow> joined_windows(std::vector<ProfiledWindow> windows);
/// Steps of a trace that marks none: from one launch to the next of the kernel that comes first of
/// those that were launched `steps` times. `begins` are the launches on one device by the kernel's
/// name. N marks are N - 1 steps, as the last one's end is not known; empty: there is no such
/// kernel.
std::vector<ProfiledWindow> windows_between_launches(
    const std::map<std::string, std::vector<std::int64_t>, std::less<>>& begins,
    std::int64_t steps);

/// Fills steps, parts and devices. Without windows: of all that lies between the first kernel's
/// begin and the last one's end.
void set_steps(Profile& profile, std::vector<ProfiledKernel> kernels,
               std::span<const ProfiledWindow> windows);

/// Adds up calls of collectives by name and size.
class CollectiveCounts {
 public:
  void add(std::string_view name, Bytes size, Seconds time);
  std::vector<ProfiledCollective> per_step(double steps) const;

 private:
  struct Sum {
    double calls = 0;  // a count, over all steps
    Seconds time{};
  };
  std::map<std::pair<std::string, double>, Sum> sums_;  // by name and bytes
};

}  // namespace reckon
