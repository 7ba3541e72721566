#include "sim/catalog/operations_keys.h"

#include <fmt/format.h>

namespace reckon::keys {

std::string provisioning(const Provider& provider, NodeKind kind) {
  const char* word = kind == NodeKind::cpu ? "cpu" : kind == NodeKind::gpu ? "gpu" : "tpu";
  return fmt::format("provisioning.{}_{}_s", to_text(provider), word);
}
std::string spot_notice(const Provider& provider) {
  return fmt::format("spot.{}_notice_s", to_text(provider));
}
std::string maintenance_every(const Provider& provider) {
  return fmt::format("maintenance.{}_every_s", to_text(provider));
}
std::string maintenance_notice(const Provider& provider) {
  return fmt::format("maintenance.{}_notice_s", to_text(provider));
}
std::string maintenance_together(const Provider& provider) {
  return fmt::format("maintenance.{}_reserved_together_fraction", to_text(provider));
}
std::string billing_granularity(const Provider& provider) {
  return fmt::format("billing.{}_granularity_s", to_text(provider));
}
std::string billing_minimum(const Provider& provider) {
  return fmt::format("billing.{}_minimum_s", to_text(provider));
}
std::string free_if_reclaimed_within(const Provider& provider) {
  return fmt::format("spot.{}_free_if_reclaimed_within_s", to_text(provider));
}
std::string pue(const Provider& provider) {
  return fmt::format("power.{}_pue_fraction", to_text(provider));
}
std::string egress_between_regions(const Provider& provider) {
  return fmt::format("egress.{}_between_regions_usd_per_gb", to_text(provider));
}
std::string egress_between_zones(const Provider& provider) {
  return fmt::format("egress.{}_between_zones_usd_per_gb", to_text(provider));
}
std::string block_ends_before(const Provider& provider) {
  return fmt::format("block.{}_ends_before_s", to_text(provider));
}
std::string block_step(const Provider& provider) {
  return fmt::format("block.{}_step_s", to_text(provider));
}
std::string block_long_step(const Provider& provider) {
  return fmt::format("block.{}_long_step_s", to_text(provider));
}
std::string block_long_from(const Provider& provider) {
  return fmt::format("block.{}_long_from_s", to_text(provider));
}
std::string block_longest(const Provider& provider) {
  return fmt::format("block.{}_longest_s", to_text(provider));
}
std::string block_most(const Provider& provider) {
  return fmt::format("block.{}_machines_most_count", to_text(provider));
}
std::string management_fee(const Service& service) {
  return fmt::format("billing.{}_management_usd_per_hour", to_text(service));
}
std::string pod_notice(const Service& service) {
  return fmt::format("spot.{}_pod_notice_s", to_text(service));
}

}  // namespace reckon::keys
