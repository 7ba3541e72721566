#pragma once
#include <optional>
#include <span>
#include <vector>

#include "sim/queue/job_times.h"
#include "sim/scenario/scenario.h"

// What the nodes of a queue cost and draw, and which job or team that is for.
namespace reckon {

/// Of one node, whether it is used or not.
struct NodeRates {
  std::optional<double> usd_per_second;  // nullopt: its machine has no price
  std::optional<double> watts;           // nullopt: its machine says no power
};
/// Of a pool whose machine is the user's own: a rate, or what was paid over the time in which it is
/// written off, and the power that it draws at its tariff. Errors (nullopt): a currency without a
/// rate.
NodeRates node_rates(const PoolSpec& pool, const std::optional<PricesSpec>& prices);

/// Nodes of a pool with the devices of one kind that their GPUs are cut into, and what of a node's
/// rates is for those.
struct PartOfPool {
  NodeGroup group;
  NodeRates rates;
};
/// One part for each kind of devices; of MIG profiles each has the share of its compute slices.
std::vector<PartOfPool> parts_of(const PoolSpec& pool, const std::optional<PricesSpec>& prices);

struct Charge {
  double usd = 0, joules = 0;
};
/// From the first submit to the last end all nodes are paid and powered. A job is charged for the
/// time in which it held GPUs, a node's rate over its GPUs each; the rest is for nobody.
struct QueueCharges {
  bool priced = false, powered = false;  // is it known of all nodes?
  Charge all;
  std::vector<Charge> of_job;
};
/// `rates` by group; `holdings` are all of the run.
QueueCharges charges_of(const QueueRun& run, std::span<const Holding> holdings,
                        std::span<const NodeGroup> groups, std::span<const NodeRates> rates);

}  // namespace reckon
