#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/fact.h"
#include "sim/base/quantity.h"
#include "sim/base/words.h"
#include "sim/catalog/providers.h"

// Facts of the catalog: where things are, how they are bought, what they cost.
namespace reckon {

enum class CapacityType { on_demand, spot, reserved };

constexpr auto words_of(CapacityType) {
  return std::array{Word<CapacityType>{"on_demand", CapacityType::on_demand},
                    Word<CapacityType>{"spot", CapacityType::spot},
                    Word<CapacityType>{"reserved", CapacityType::reserved}};
}

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

}  // namespace reckon
