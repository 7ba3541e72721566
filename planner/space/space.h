#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/change.h"
#include "planner/question.h"
#include "sim/base/money.h"
#include "sim/scenario/layout.h"
#include "sim/scenario/plan.h"

// All that could be run: hardware of the catalog under its rules, where it is sold and how, and the
// ways to lay the model out on it.
namespace reckon::planner {

/// One kind of node.
struct Hardware {
  bool own = false;  // the scenario's pool as it stands; the rest says what that is
  Provider provider;
  std::string machine, accelerator;  // canonical; accelerator "": none
  std::string slice;                 // TPU; machine is then ""
  int per_node = 0;
  std::optional<SaveInterval> save_interval;  // where it is free
  std::string checkpoint_storage;             // where it is free; else ""
  std::optional<Precision> precision;         // where it is free: the accelerator's own
  std::string server_machine;                 // of parameter servers, where it is free; else ""
  std::vector<std::string> regions;           // where it may be had
  /// Where zones are free: of each region; a zone "" is any.
  std::map<std::string, std::vector<std::string>> zones;
};
/// In the order of provider, machine, accelerator and count, whatever the catalog's order.
/// `nowhere`: kinds that fit the question but that no place offers. `forbidden`: that only places
/// offer which the limits on residency and carbon exclude.
struct HardwareList {
  std::vector<Hardware> kinds;
  std::size_t nowhere = 0, forbidden = 0;
};
HardwareList hardware_for(const Question& question, const Catalog& catalog);

/// How the model is split over so many nodes of one kind. `layout` holds for every kind of
/// strategy: where the model is not cut, data is the accelerators and micro_batch the batch of one.
struct Split {
  StrategyKind kind = StrategyKind::single;
  int nodes = 1;
  int parameter_servers = 0;
  Layout layout;
  std::int64_t steps = 0;
  double step_seconds = 0;         // at the medians of all that is assumed
  double residual_half_width = 0;  // of its natural logarithm, by evidence: nine of ten lie within
};

/// How a gang is bought that is not bought all alike: the rest of its nodes is spot.
struct Mix {
  /// A share of the nodes, rounded up, is bought so; 0: none is.
  double share = 0;  // 0..1
  CapacityType base = CapacityType::on_demand;
  HourlyRate base_price, base_lowest;  // of a node
  int base_reserved = 0;               // nodes at the lowest price
  /// On-demand nodes replace spot nodes that do not come within this time.
  std::optional<Seconds> patience;
  std::string patience_text;                   // as written
  HourlyRate fallback_price, fallback_lowest;  // of a node
  PriceSpread base_spread, fallback_spread;
  friend bool operator==(const Mix&, const Mix&) = default;
};

/// What a node costs in one place, bought in one way.
struct Offer {
  std::string region;
  std::string zone;                                // where it is free; else ""
  CapacityType pricing = CapacityType::on_demand;  // of a mix spot
  Mix mix;
  PoolBounds bounds;  // of the workers' pool; of a mix none
  /// Where what scales the pool buys (Freedom::as_scaled): who that is and what it may buy, in
  /// words, and which kinds of capacity; `pricing` is what it takes first.
  std::string made_by;
  std::array<bool, 3> made_of{};         // by CapacityType
  int of_gang = 1;                       // gangs that are there at most: 2 where it replaces nodes
  std::optional<RestartSpec> restart;    // where it is free, or the scenario says one
  bool known = false;                    // the prices of all pools are
  std::vector<HourlyRate> pools;         // of a node of each pool, in the plan's order
  std::vector<HourlyRate> pools_lowest;  // where a reservation is cheaper, its price
  std::vector<PriceSpread> spreads;      // of each pool's price
  int reserved = 0;  // workers' nodes that a reservation covers; the others have pools' price
  bool known_beyond = true;  // that price is known
  HourlyRate storage;
  int quota = 0;                       // accelerators; INT_MAX: no quota
  std::array<int, 3> quota_of_type{};  // of those that are bought so, by CapacityType
  /// All markets that it buys in; what a reservation covers is certain.
  std::vector<PriceSpread> markets() const;
  bool is_mixed() const { return mix.share > 0 || mix.patience; }
};
/// INT_MAX: none. The quota of all, or of those of one type alone.
int quota_for(const Question& question, const Provider& provider, const std::string& region,
              const std::string& accelerator, std::optional<CapacityType> type = {});
/// Are the accelerators of so many nodes within the offer's quotas?
bool within_quotas(const Offer& offer, const Split& split, int per_node);
/// Nodes that stand by.
inline int spares_of(const Offer& offer) {
  return offer.restart ? offer.restart->spares.value_or(0) : 0;
}
/// Can a job that is split so go on after a loss as the offer says?
bool may_restart(const Offer& offer, const Split& split);
/// Nodes of so many that are the mix's base; the others are bought as `pricing` says.
int base_nodes(const Offer& offer, int nodes);
/// Of workers, there at once: when a job goes back to spot nodes, their fallback nodes are
/// still there.
int nodes_at_most(const Offer& offer, const Split& split);
/// The same of those that are bought so.
int nodes_at_most(const Offer& offer, const Split& split, CapacityType type);
/// Nodes that hold nothing but parameter servers.
int server_nodes(const Question& question, const Split& split);
/// Of workers that are paid though nothing interrupts: the gang and spare nodes.
int nodes_paid(const Offer& offer, const Split& split);
/// "spot", "1 on_demand + 3 spot", "4 spot, on_demand fallback after 10min".
std::string bought_text(const Offer& offer, int nodes);

/// What turns the question's scenario into that of one candidate.
std::vector<Change> changes_for(const Question& question, const Hardware& hardware,
                                const Offer& offer, const Split& split);
/// "2 x a3-highgpu-8g (8 H100-SXM5-80 each)".
std::string hardware_text(const Hardware& hardware, int nodes);
/// "checkpoints every 30min on pd-ssd"; "" where neither is free.
std::string checkpoint_text(const Hardware& hardware);
/// "elastic restart, at least 12 nodes"; "" where neither file nor question says one.
std::string restart_words(const Offer& offer);
/// ", full recomputation"; "" where nothing is computed again.
std::string recompute_text(const Layout& layout);
/// "sharded, ZeRO-3, batch 2 x 4, full recomputation".
std::string strategy_text(const Split& split);

}  // namespace reckon::planner
