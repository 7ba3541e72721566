#include "sim/accuracy/own_row.h"

#include <algorithm>
#include <cmath>

#include "sim/accuracy/evidence/evidence.h"
#include "sim/accuracy/plan_evidence.h"

namespace reckon {
namespace {

std::optional<Domain> domain_named(std::string_view name) {
  for (std::size_t k = 0; k < kDomains; ++k)
    if (to_text(static_cast<Domain>(k)) == name) return static_cast<Domain>(k);
  return std::nullopt;
}

}  // namespace

OwnRow own_row(Plan plan, const NetworkModel& network) {
  set_step_factor(plan, 1, 1, 1);
  const PlannedWorkload& job = plan.only_job();
  const PlannedPool& pool = *plan.pool_with(Role::worker);
  const StepEstimate step = estimate_step(plan, job, network);
  OwnRow row;
  row.id = plan.name;
  row.accelerator = pool.accelerator->name;
  row.precision = to_text(job.precision);
  row.network = network_of(job.model);
  row.domain = to_text(domain_of(job.model.name(), job.model.sample_unit()));
  row.parameters = double(job.model.parameters());
  row.stack = job.stack;
  row.accelerators = job.strategy.accelerators();
  row.many_nodes = row.accelerators > std::max(1, pool.accelerators_per_node);
  row.link = row.accelerators > 1 ? pool.peer_link.name : "";
  row.samples = double(job.global_batch);
  row.modelled_seconds = step.step.count();
  row.device_share = device_share(step);
  return row;
}

std::optional<EvidenceFeatures> features_of(const OwnRow& row, const Catalog& catalog) {
  const Accelerator* accelerator = catalog.find_accelerator(row.accelerator);
  const auto precision = from_text<Precision>(row.precision);
  const auto domain = domain_named(row.domain);
  if (accelerator == nullptr || !precision || !domain) return std::nullopt;
  EvidenceFeatures f = features_of(*accelerator, row.stack, row.link);
  f.precision = *precision;
  f.domain = *domain;
  f.network = word_id(row.network);
  f.log_parameters = std::log(std::max(1.0, row.parameters));
  f.many_nodes = row.many_nodes;
  set_size(f, row.accelerators, row.samples);
  return as_own(f);
}

EvidenceFeatures as_own(EvidenceFeatures features) {
  features.source = features.publisher = word_id(kOwnSource);
  if (features.stack == 0) features.stack = features.stack_family = word_id("own, not said");
  return features;
}

}  // namespace reckon
