#include <fmt/format.h>

#include <algorithm>

#include "exchange/infrastructure/writers.h"

namespace reckon::infrastructure {

std::string literal(const std::string& text) {
  std::string out;
  for (std::size_t k = 0; k < text.size(); ++k) {
    out += text[k];
    const bool opens =
        (text[k] == '$' || text[k] == '%') && k + 1 < text.size() && text[k + 1] == '{';
    if (opens) out += text[k];
  }
  return out;
}

std::string resource_name(const PlannedPool& pool) {
  const bool digit = !pool.name.empty() && pool.name.front() >= '0' && pool.name.front() <= '9';
  return digit || pool.name.starts_with('-') ? "pool_" + pool.name : pool.name;
}

Json variable(const char* type, const std::string& description) {
  return {{"type", type}, {"description", description}};
}

Json labels_of(const CloudPool& pool) {
  Json labels = Json::object();
  for (const auto& [key, value] : pool.labels) labels[key] = literal(value);
  return labels;
}

std::string azure_zone(const Plan& plan) {
  const std::size_t at = plan.zone.find_last_not_of("0123456789");
  return at == std::string::npos ? plan.zone : plan.zone.substr(at + 1);
}

void refuse_azure_names(const CloudCluster& cluster, Refusals& refused) {
  constexpr std::size_t kLongest = 12;
  const auto is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_allowed = [&](char c) { return is_lower(c) || (c >= '0' && c <= '9'); };
  for (const CloudPool& p : cluster.pools) {
    const std::string& name = p.pool->name;
    if (name.size() <= kLongest && !name.empty() && is_lower(name.front()) &&
        std::ranges::all_of(name, is_allowed))
      continue;
    refused.add("cluster.pools." + name, fmt::format("a pool named '{}'", name),
                "1 to 12 lower-case letters and digits, a letter first");
  }
}

void note_bucket(InfrastructureText& out, const CloudCluster& cluster, const char* command) {
  if (cluster.bucket)
    out.left_to_user.push_back(fmt::format("a bucket for checkpoints: {}", command));
}

}  // namespace reckon::infrastructure
