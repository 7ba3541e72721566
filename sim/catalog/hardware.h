#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/fact.h"
#include "sim/base/quantity.h"
#include "sim/base/words.h"
#include "sim/catalog/precision.h"
#include "sim/catalog/providers.h"

// Facts of the catalog: accelerators, slices, machines and what goes into which, links.
namespace reckon {

enum class AcceleratorKind { gpu, tpu };

constexpr auto words_of(AcceleratorKind) {
  return std::array{Word<AcceleratorKind>{"gpu", AcceleratorKind::gpu},
                    Word<AcceleratorKind>{"tpu", AcceleratorKind::tpu}};
}

struct Accelerator {
  std::string name;                  // canonical: "P100-PCIE-16"
  std::vector<std::string> aliases;  // cloud names: "nvidia-tesla-p100", "NVIDIA_TESLA_P100"
  AcceleratorKind kind = AcceleratorKind::gpu;
  std::string vendor;
  std::string architecture;  // "Pascal": efficiencies fall back to it
  int year = 0;
  /// Dense peak by precision, in the order of kPrecisions; nullopt where the hardware lacks it.
  std::array<std::optional<Fact<FlopsPerSecond>>, kPrecisions.size()> peak;
  Fact<Bytes> memory;  // of one device, as printed
  /// What programs find of it: less what the driver and error correction keep, more where memory
  /// beside the chip streams into it. nullopt: not known, all of it.
  std::optional<Fact<Bytes>> usable_memory;
  Fact<BytesPerSecond> memory_bandwidth;
  /// All of a device's accelerator-to-accelerator links together, one direction; nullopt: only
  /// PCIe.
  std::optional<Fact<BytesPerSecond>> peer_bandwidth;
  std::string
      peer_link;  // LinkClass of those links: "nvlink", "nvswitch", "ici"; "pcie" without them
  Fact<BytesPerSecond> host_bandwidth;  // PCIe, one direction (TPU: infeed)
  int cores_per_device = 1;             // a TPU v2 chip has 2
  int torus_dimensions = 0;             // TPU: 2 or 3; 0: not a torus
  int power_watts = 0;
  std::string notes;

  Bytes memory_for_programs() const { return usable_memory ? usable_memory->value : memory.value; }
  std::optional<Fact<FlopsPerSecond>> peak_for(Precision p) const;
  /// Mixed precision where it has it: bf16, else fp16, else fp32.
  Precision training_precision() const;
};

/// A slice shape that can be bought: "v2-8" is 4 chips.
struct TpuSlice {
  std::string name;         // "v2-8"
  std::string accelerator;  // "TPU-v2"
  int chips = 0;
  std::vector<int> torus;  // chips along each axis: {2, 2}
  bool wraps = false;      // whole pod: the torus closes; a part of it is a mesh
  int hosts = 1;
  std::string machine;  // of each host: "tpu-v2-host"; its vCPUs feed hosts-th part of the chips
};

struct Machine {
  std::string name;  // "n1-standard-16"
  Provider provider;
  int vcpus = 0;
  Fact<Bytes> memory;
  Fact<BytesPerSecond> network;  // egress of one VM, all NICs together
  std::string accelerator;       // built in: canonical name; "" where GPUs are attached or none
  int accelerator_count = 0;
  /// LinkClass by which the accelerators of this machine talk: "nvlink", "nvswitch", "pcie", "ici";
  /// "" where they are attached: the accelerator's peer_link decides.
  std::string peer_fabric;
  std::string network_link =
      "ethernet";  // LinkClass of `network`: "ethernet", "efa", "infiniband", "gpudirect-tcpx"
  Seconds minimum_rental{};  // it is rented, and billed, for that at least; 0: the provider's rule
  /// Services that have the type; empty: all of the provider's (AI Platform has types of its own).
  std::vector<Service> services;
  std::string notes;

  bool offered_under(const Service& service) const;
};

/// Which counts of a GPU a machine may carry, by service (AI Platform and GCE differ).
struct AttachmentRule {
  Service service;
  std::string machine;
  std::string accelerator;
  std::vector<int> counts;  // empty: not allowed
};

/// The largest machine that may carry `count` of a GPU: what machines of a size of their own
/// follow, and what takes counts away from a named machine in zones of their own (four P100 in
/// us-east1-c).
struct AttachmentLimit {
  Service service;
  std::string accelerator;
  int count = 1;
  std::vector<std::string> zones;  // empty: everywhere else
  int vcpus = 0;
  Fact<Bytes> memory;
};

/// Machines of a size of one's own: "custom-24-98304" is 24 vCPUs and 98,304 MiB.
struct CustomFamily {
  std::string name;  // "n1-custom": what its prices are listed under
  Provider provider;
  std::vector<std::string> prefixes;  // before "-VCPUS-MEMORY_MIB"; the first is the one we write
  int vcpus_max = 0;                  // 1, or an even number up to this
  Fact<Bytes> memory_per_vcpu_min, memory_per_vcpu_max;
  Bytes memory_step{};
  std::string
      like;  // network as the largest machine of this family ("n1-standard-") with no more vCPUs
};

/// Achieved fraction of a link by a collective's transfers, and its latency.
struct LinkClass {
  std::string name;         // "nvlink", "nvswitch", "pcie", "ethernet", "ici"
  Fact<double> efficiency;  // of the printed bandwidth, 0..1
  Fact<Seconds> latency;    // per hop of a collective, software included
  // Of accelerators' collectives, where they were measured (docs/models/network.md); else none:
  std::optional<Fact<Seconds>> call;   // once a collective
  std::optional<Fact<double>> pieces;  // c of L + w + c sqrt(L w), no unit
  // Factor by which all-reduces that switches add up are faster.
  std::optional<Fact<double>> reduction;
  /// What one flow moves at most, whatever is printed for the link; nullopt: all of it.
  std::optional<Fact<BytesPerSecond>> flow;
};

}  // namespace reckon
