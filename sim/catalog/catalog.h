#pragma once
#include <array>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/base/fact.h"
#include "sim/base/quantity.h"
#include "sim/base/words.h"
#include "sim/catalog/convergence.h"
#include "sim/catalog/precision.h"
#include "sim/catalog/providers.h"
#include "sim/catalog/regions.h"
#include "sim/model/graph.h"

// The facts: what hardware can do, what machines hold it, where it is, what it costs, how the
// operators' software behaves. All of it is data (catalogs/, its README has the file formats);
// nothing in code knows a product's name.
namespace reckon {

/// Where a number comes from. Printed by `--explain`-like output and by the assumptions table.
struct Source {
  std::string id;         // "ml-engineering", short and stable
  std::string reference;  // page, paper with equation, repository@commit path
  std::string retrieved;  // ISO date on which it was read, or the date the source gives; "" for
                          // general knowledge
};

enum class CapacityType { on_demand, spot, reserved };
enum class AcceleratorKind { gpu, tpu };

constexpr auto words_of(CapacityType) {
  return std::array{Word<CapacityType>{"on_demand", CapacityType::on_demand},
                    Word<CapacityType>{"spot", CapacityType::spot},
                    Word<CapacityType>{"reserved", CapacityType::reserved}};
}
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

/// A cluster that a managed service offers under one name (AI Platform's scale tiers).
struct ScaleTier {
  struct Part {
    std::string role;  // chief, worker, parameter_server
    std::string machine;
    int count = 1;
    std::string accelerator;  // attached to each; "" none, or built in
    int accelerator_count = 0;
    std::string slice;  // a TPU slice beside it
  };
  Service service;
  std::string name;         // "STANDARD_1"
  std::vector<Part> parts;  // empty: the user names machines and counts (CUSTOM)
  SourceId source{};
};

/// What a Kubernetes service calls things: label keys, taints, resources, values. By dotted key:
/// "labels.accelerator", "taints.gpu", "resources.gpu", "accelerators.T4" (the value of
/// labels.accelerator for it), "api_versions.job".
struct ClusterNames {
  struct Name {
    std::string text;
    SourceId source{};
  };
  std::string name;  // "gke"; "kubernetes" holds what is the same everywhere
  std::map<std::string, Name, std::less<>> names;
  const Name* find(std::string_view key) const;  // nullptr: no such key
};

/// What a model's authors print of its size, or what the files of its weights hold.
struct PublishedModel {
  std::string model;                                          // a name of the zoo
  std::optional<Fact<double>> parameters, active_parameters;  // counts
  std::optional<Fact<double>> forward_macs;  // of one sample, convolutions and linear layers
  std::string notes;
};

struct Location {
  Provider provider;
  std::string item;  // an accelerator, a TPU slice or a machine, by its canonical name
  std::string region;
  std::vector<std::string> zones;  // empty: not known which of the region's
  bool elsewhere = false;          // the source lists some regions only: others may have it too
};

/// One price a provider prints. `item` is a machine or an accelerator or a disk; GCP splits VM and
/// GPU.
struct Offering {
  Provider provider;
  std::string region;
  std::vector<std::string> zones;  // empty: all of the region
  std::string item;
  enum class Covers {
    machine,
    accelerator,
    slice,
    machine_with_accelerators,
    vcpu,        // one vCPU of a custom family
    memory_gib,  // one GiB of it
    storage
  } covers = Covers::machine;
  int count = 1;  // the price is for so many of item
  std::optional<Fact<UsdPerSecond>>
      on_demand;  // for `count` items; storage: per GB (1e9 bytes) and second
  std::optional<Fact<UsdPerSecond>> spot;
  std::string date;      // ISO date of the price
  bool suspect = false;  // the on-demand price is used only if asked for; the reason is in notes
  int layer = 0;         // grows with the layers: of two prices of one date the later layer's wins
  std::string notes;
};

/// Of prices.csv; a storage's price has a file of its own, and no word here.
constexpr auto words_of(Offering::Covers) {
  using enum Offering::Covers;
  using Covers = Word<Offering::Covers>;
  return std::array{
      Covers{"machine", machine}, Covers{"accelerator", accelerator},
      Covers{"slice", slice},     Covers{"machine_with_accelerators", machine_with_accelerators},
      Covers{"vcpu", vcpu},       Covers{"memory_gib", memory_gib}};
}

struct Dataset {
  std::string name;
  std::vector<std::string> aliases;
  Fact<Samples> samples;
  Fact<Samples> validation_samples;
  Fact<Bytes> bytes_per_sample;     // as stored and read
  Fact<double> decode_cpu_seconds;  // vCPU seconds to decode and augment one sample; 0: none
  SampleUnit unit = SampleUnit::image;
};

struct Storage {
  std::string name;                  // "gcs-standard"
  std::vector<std::string> aliases;  // "gcs"
  Provider provider;
  bool is_default = false;             // what a scenario of the provider uses that names none
  Fact<BytesPerSecond> read_per_node;  // many streams in parallel
  Fact<BytesPerSecond> write_per_node;
  Fact<Seconds> latency;  // to the first byte
};

/// Achieved fraction of peak by kind of work: fitted from measurements (docs/MODELS.md says from
/// which).
struct Efficiency {
  std::string accelerator;  // canonical name, or an architecture ("Pascal")
  Precision precision = Precision::fp32;
  std::string stack;         // software stack ("tf1"), class of stacks ("fused-lm"), "" = any
  Fact<double> convolution;  // of peak FLOP/s, for large layers
  /// Speed of convolutions of 3 x 3 with stride 1 over that of all others: such have algorithms of
  /// 2.25 times fewer multiplications [Lavin and Gray 2016, "Fast algorithms for convolutional
  /// neural networks", CVPR, Sec. 4.1]. 1: no such algorithm.
  Fact<double> winograd{1.0};
  Fact<double> matmul;     // of peak FLOP/s
  Fact<double> attention;  // of peak FLOP/s
  Fact<double> memory;     // of memory bandwidth, 0..1 and above: fused passes
  Fact<Flops> half_size;  // a kernel of so many FLOPs reaches half of that efficiency; 0: size does
                          // not matter
  Fact<Seconds> launch;   // per kernel, not hidden
  Fact<Seconds> host;     // of the host to issue one layer's pass: a step takes no less than all
  Fact<double> step_spread;  // factor on step time: value 1, low..high = 5th..95th percentile of
                             // the fit's residuals
};

/// What a software stack changes on any accelerator, for those on which it was never measured: its
/// speed against the middle of all stacks, and its host. A name with a star in front ("*-mlperf")
/// is a family: all stacks that end so and have no row of their own.
struct SoftwareStack {
  std::string name;    // "tf1", "pytorch-ngc"
  Fact<double> speed;  // factor
  Fact<Seconds> host;  // as Efficiency::host
};
/// Stacks that are built alike: their rows of efficiencies are one, of the class's name, where they
/// have none of their own. `stacks`: one name, or how names begin ("megatron*").
struct StackClass {
  std::string stacks, name;
};
/// What a stack keeps of an accelerator's memory besides the tensors that every framework has.
/// `stacks`: one name, or how names begin.
struct StackMemory {
  std::string stacks;
  Fact<Bytes> reserve;            // gone before the first tensor
  Bytes buffers_per_parameter{};  // of a rank's own parameters
  bool keeps_scores = false;      // attention without a fused kernel: its softmax's output is kept
};
/// A row for any stack, as this stack would have it.
Efficiency with_stack(Efficiency any, const SoftwareStack& stack);

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

/// Numbers of the operators' software and of the providers' rules, by key:
/// "cluster_autoscaler.scan_interval_s". The typed view is what make_plan (sim/scenario/plan.h)
/// takes from it.
struct OperationalDefaults {
  std::map<std::string, Fact<double>, std::less<>> numbers;  // SI units, the unit last in the key
  /// CHECKs that the key exists: the catalog's own test holds every key that code asks for.
  const Fact<double>& at(std::string_view key) const;
  const Fact<double>* find(std::string_view key) const;  // nullptr: no such key
};

class Catalog {
 public:
  std::vector<Source> sources;           // [0] is the user
  std::vector<ProviderRules> providers;  // by rank
  std::vector<ServiceRules> services;    // as the providers list them; what several have comes last
  std::vector<Accelerator> accelerators;
  std::vector<TpuSlice> slices;
  std::vector<Machine> machines;
  std::vector<AttachmentRule> attachments;
  std::vector<AttachmentLimit> limits;
  std::vector<CustomFamily> custom_families;
  std::vector<ScaleTier> tiers;
  std::vector<ClusterNames> cluster_names;
  std::vector<Location> locations;
  std::vector<Region> regions;
  std::vector<Offering> offerings;
  std::vector<Dataset> datasets;
  std::vector<Storage> storages;
  std::vector<Efficiency> efficiencies;
  std::vector<SoftwareStack> stacks;
  std::vector<StackClass> stack_classes;
  std::vector<StackMemory> stack_memories;
  std::vector<LinkClass> links;
  std::vector<PublishedModel> published_models;
  std::vector<ConvergencePoint> convergence;
  OperationalDefaults operations;
  /// XXH3-64 of what the layers say, 16 hex digits: the order of rows and comments do not matter.
  std::string digest;
  /// Calibration overlays over the layers, in their order: what a forecast names.
  std::vector<std::string> calibrations;

  /// By the exact name; nullptr: unknown.
  const ProviderRules* find_provider(std::string_view name) const;
  const ServiceRules* find_service(std::string_view name) const;
  /// Of a name that is in the catalog: CHECKed.
  const ProviderRules& rules_of(const Provider& provider) const;
  const ServiceRules& rules_of(const Service& service) const;
  /// Before which others it comes: ProviderRules::rank's order; the last for one that is unknown.
  std::size_t place_of(const Provider& provider) const;
  /// The one provider that has the service; nullptr: several have it, or none.
  const ProviderRules* provider_of(const Service& service) const;
  /// The machines of one's own (the first of such "providers"): CHECKed, a catalog has them.
  const ProviderRules& own_machines() const;

  // All by canonical name or alias, case-insensitive, '-' and '_' alike; nullptr: unknown.
  const Accelerator* find_accelerator(std::string_view name) const;
  const Machine* find_machine(const Provider& provider, std::string_view name) const;
  const TpuSlice* find_slice(std::string_view name) const;
  const Dataset* find_dataset(std::string_view name) const;
  const Storage* find_storage(std::string_view name) const;
  const LinkClass* find_link(std::string_view name) const;

  /// The row of the accelerator, else of its architecture, else nullptr; among those the stack's
  /// own before "".
  const Efficiency* find_efficiency(const Accelerator& accelerator, Precision precision,
                                    std::string_view stack) const;
  /// The class of the stack ("fused-lm"), or a class's own name; "": none.
  std::string_view class_of_stack(std::string_view stack) const;
  /// What the stack keeps of memory; nullptr: what frameworks do in general.
  const StackMemory* find_stack_memory(std::string_view stack) const;
  /// The stack's own row, else its family's, else nullptr.
  const SoftwareStack* find_stack(std::string_view stack) const;
  /// Counts that `machine` may carry of `accelerator` under `service` in `zone` ("": where no
  /// exception holds); empty: none. A machine of a custom family follows the limits.
  std::vector<int> allowed_counts(const Service& service, std::string_view machine,
                                  std::string_view accelerator, std::string_view zone = {}) const;
  /// Every (region, zones) that offers the item: an accelerator (then also the slices made of it),
  /// a TPU slice or a machine. Ordered by region; empty: nowhere known.
  std::vector<const Location*> locations_of(const Provider& provider, std::string_view item) const;
  /// The newest offering of the item that holds in region and zone ("" = any zone) and has a price
  /// of that capacity type; suspect on-demand prices are passed over, of equal dates the later
  /// layer's wins. Zone "" takes offerings of any zone. Reserved has no list price. nullptr: no
  /// price known. `suspect`: take suspect prices too.
  const Offering* find_offering(const Provider& provider, std::string_view region,
                                std::string_view zone, std::string_view item,
                                Offering::Covers covers, CapacityType capacity,
                                bool suspect = false) const;
  const CustomFamily* find_custom_family(const Provider& provider, std::string_view name) const;
  const ScaleTier* find_tier(const Service& service, std::string_view name) const;
  const ClusterNames* find_cluster_names(std::string_view name) const;
  const PublishedModel* find_published(std::string_view model) const;
  /// The laws of a model on a dataset, one a target that is known, lowest first.
  std::vector<Convergence> convergence_of(std::string_view model, std::string_view dataset) const;
};

/// Reads every file of `layers` in order; an entry of a later layer replaces the fields it gives of
/// the entry with the same key in an earlier one, and adds what is new. All errors at once, with
/// file:line:column.
Expected<Catalog> load_catalog(std::span<const std::filesystem::path> layers);

/// Where our own catalogs are: $RECKON_CATALOGS, else <program>/../share/reckon/catalogs, else the
/// `catalogs` of the source tree this program was built in. Empty path: nowhere.
std::filesystem::path default_catalog_directory();

}  // namespace reckon
