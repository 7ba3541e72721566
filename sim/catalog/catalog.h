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
#include "sim/catalog/hardware.h"
#include "sim/catalog/market.h"
#include "sim/catalog/precision.h"
#include "sim/catalog/providers.h"
#include "sim/catalog/regions.h"
#include "sim/catalog/services.h"
#include "sim/catalog/software.h"
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

/// What a model's authors print of its size, or what the files of its weights hold.
struct PublishedModel {
  std::string model;                                          // a name of the zoo
  std::optional<Fact<double>> parameters, active_parameters;  // counts
  std::optional<Fact<double>> forward_macs;  // of one sample, convolutions and linear layers
  std::string notes;
};

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
