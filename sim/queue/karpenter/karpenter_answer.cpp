#include "sim/queue/karpenter/karpenter_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace reckon {
namespace {

constexpr double kVmMemoryOverhead = 0.075, kBytesOfMebibyte = 1024.0 * 1024.0,
                 kSecondsOfNodeHour = 3600, kNanoOfUsd = 1e9;

double hours_of(const LaunchedNode& node) {
  return to_seconds(node.gone - node.requested).count() / kSecondsOfNodeHour;
}

double usd_per_hour(const LaunchOffering& offering) {
  return double(offering.nano_usd_per_hour) / kNanoOfUsd;
}

void sort_by_cost(std::vector<NodesOfOffering>& nodes) {
  std::ranges::stable_sort(nodes, std::greater<>{}, &NodesOfOffering::usd);
}

}  // namespace

KarpenterMarket market_of(const Scenario& scenario, const KarpenterOffers& offers) {
  KarpenterMarket market;
  market.spec = *scenario.cluster.karpenter;
  market.begins = scenario.start;
  market.reclaim = offers.reclaim;
  market.notice = offers.notice;
  market.shortage = offers.shortage;
  market.drift = scenario.disruptions.drift;
  for (const KarpenterOffer& offer : offers.offers) {
    const double mib = offer.machine.memory.value.v / kBytesOfMebibyte;
    const NodeRoom size{std::int64_t{offer.machine.vcpus} * 1000, static_cast<std::int64_t>(mib),
                        offer.machine.accelerator_count};
    NodeRoom allocatable = size;
    allocatable.memory_mib = static_cast<std::int64_t>(mib * (1 - kVmMemoryOverhead));
    market.offerings.push_back({offer.machine.name, offer.capacity, offer.node_pool, allocatable,
                                size, offer.price.nano_usd_per_hour, offer.values});
    market.delays.push_back(offer.provisioning);
  }
  return market;
}

KarpenterAnswer answer_of(const KarpenterRun& run, const KarpenterMarket& market) {
  KarpenterAnswer out;
  out.nodes = double(run.nodes.size());
  out.starved = double(run.starved);
  out.hopeless = double(run.hopeless);
  if (std::ranges::any_of(market.offerings,
                          [](const LaunchOffering& o) { return o.capacity == CapacityType::spot; }))
    out.reclaims = double(run.reclaims), out.refused = double(run.refused);
  const auto nodes_of = [&](ConsolidationKind kind) {
    return double(run.consolidations[std::size_t(kind)].nodes);
  };
  if (!market.drift.empty()) out.drifted = nodes_of(ConsolidationKind::drift);
  out.empty = nodes_of(ConsolidationKind::empty);
  out.several = nodes_of(ConsolidationKind::several);
  out.single = nodes_of(ConsolidationKind::single);
  for (const ConsolidationCount& count : run.consolidations)
    out.replacements += double(count.replacements);
  std::map<std::pair<std::string, CapacityType>, NodesOfOffering> by;
  for (const LaunchedNode& node : run.nodes) {
    const LaunchOffering& offering = market.offerings[node.offering];
    NodesOfOffering& of = by[{offering.type, offering.capacity}];
    of.type = offering.type;
    of.capacity = offering.capacity;
    of.nodes += 1;
    of.node_hours += hours_of(node);
    of.usd += hours_of(node) * usd_per_hour(offering);
    out.node_hours += hours_of(node);
  }
  for (auto& [key, of] : by) out.by_offering.push_back(std::move(of));
  sort_by_cost(out.by_offering);
  return out;
}

KarpenterAnswer mean_of(std::span<const KarpenterAnswer* const> answers) {
  KarpenterAnswer out;
  const double share = 1 / double(answers.size());
  for (const KarpenterAnswer* answer : answers) {
    for (const auto which :
         {&KarpenterAnswer::nodes, &KarpenterAnswer::node_hours, &KarpenterAnswer::empty,
          &KarpenterAnswer::several, &KarpenterAnswer::single, &KarpenterAnswer::replacements,
          &KarpenterAnswer::starved, &KarpenterAnswer::hopeless})
      out.*which += answer->*which * share;
    for (const auto which :
         {&KarpenterAnswer::reclaims, &KarpenterAnswer::drifted, &KarpenterAnswer::refused})
      if (answer->*which) out.*which = (out.*which).value_or(0) + *(answer->*which) * share;
    for (const NodesOfOffering& of : answer->by_offering) {
      auto at = std::ranges::find_if(out.by_offering, [&](const NodesOfOffering& known) {
        return known.type == of.type && known.capacity == of.capacity;
      });
      if (at == out.by_offering.end())
        at = out.by_offering.insert(at, {of.type, of.capacity, 0, 0, 0});
      at->nodes += of.nodes * share;
      at->node_hours += of.node_hours * share;
      at->usd += of.usd * share;
    }
  }
  sort_by_cost(out.by_offering);
  return out;
}

QueueCharges charges_of(const KarpenterRun& run, const KarpenterMarket& market) {
  QueueCharges out;
  out.priced = true;
  out.of_job.resize(run.run.jobs.size());
  for (const LaunchedNode& node : run.nodes)
    out.all.usd += hours_of(node) * usd_per_hour(market.offerings[node.offering]);
  for (const Holding& h : run.holdings) {
    const LaunchOffering& offering =
        market.offerings[run.nodes[static_cast<std::size_t>(h.part.node)].offering];
    const double share = double(h.part.gpus) / offering.size.gpus;
    out.of_job[h.job].usd +=
        share * usd_per_hour(offering) * to_seconds(h.end - h.begin).count() / kSecondsOfNodeHour;
  }
  return out;
}

std::string why_no_node(const JobRequest& job, const KarpenterMarket& market) {
  NodeRoom most;
  std::optional<SimDuration> longest;  // of the nodes that it fits
  for (std::size_t i = 0; i < market.offerings.size(); ++i) {
    const LaunchOffering& o = market.offerings[i];
    if (fits_node(job, market, i))
      longest = std::max(longest.value_or(SimDuration{0}), longest_stay(job, market, i));
    most.cpu_milli = std::max(most.cpu_milli, o.allocatable.cpu_milli);
    most.memory_mib = std::max(most.memory_mib, o.allocatable.memory_mib);
    most.gpus = std::max(most.gpus, o.allocatable.gpus);
  }
  if (longest)
    return fmt::format(
        "its work takes {}, and a node that it fits is there for it for at most {} (expireAfter); "
        "no checkpoint saves a part of it before. Give it `doNotDisrupt: true`, a shorter "
        "`checkpoint` or its NodePool a longer `expireAfter`",
        format_duration(to_seconds(std::get<FixedTime>(job.work).time)),
        format_duration(to_seconds(*longest)));
  const PodRequest& pod = job.worker;
  return fmt::format(
      "a pod of {} GPUs, {} vCPUs and {} MiB fits no node that the NodePools and their limits "
      "admit; the largest have {} GPUs, {} vCPUs, {} MiB",
      pod.gpus, pod.cpu_milli / 1000, pod.memory_mib, most.gpus, most.cpu_milli / 1000,
      most.memory_mib);
}

}  // namespace reckon
