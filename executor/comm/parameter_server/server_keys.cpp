#include "executor/comm/parameter_server/server_keys.h"

#include <bit>
#include <cmath>

#include <xxhash.h>

#include "executor/comm/wire.h"
#include "sim/base/check.h"
#include "sim/step/buckets.h"

namespace reckon {

ParameterRange ServerKeys::part(std::size_t group, int server) const {
  RECKON_CHECK(group < groups.size());
  RECKON_CHECK(server >= 0 && server < servers());
  const ParameterRange whole = groups[group];
  double before = 0, total = 0;
  for (std::size_t s = 0; s < weights.size(); ++s) {
    if (int(s) < server) before += weights[s];
    total += weights[s];
  }
  const auto edge = [&](double share) {
    return whole.first + std::size_t(std::llround(double(whole.count) * (share / total)));
  };
  const std::size_t first = edge(before), end = edge(before + weights[std::size_t(server)]);
  return {.first = first, .count = end - first};
}

std::size_t ServerKeys::count() const {
  return groups.empty() ? 0 : groups.back().first + groups.back().count;
}

ServerKeys server_keys(std::span<const ParameterRange> layers, std::vector<double> weights) {
  RECKON_CHECK(!weights.empty());
  for (const double weight : weights) RECKON_CHECK(weight > 0);
  std::size_t count = 0;
  for (const ParameterRange& layer : layers) {
    RECKON_CHECK(layer.first == count);
    count += layer.count;
  }
  const auto bytes = [](std::size_t keys) { return Bytes{double(keys * sizeof(float))}; };
  ServerKeys keys{.groups = {}, .weights = std::move(weights)};
  ServerGroupRule rule(bytes(count), step_assumptions::kParameterServerGroups);
  ParameterRange open;
  for (const ParameterRange& layer : layers) {
    open.count += layer.count;
    if (!rule.add(bytes(layer.count))) continue;
    keys.groups.push_back(open);
    open = {.first = open.first + open.count, .count = 0};
  }
  if (open.count > 0 && keys.groups.empty())
    keys.groups.push_back(open);
  else if (open.count > 0)
    keys.groups.back().count += open.count;
  return keys;
}

std::uint64_t ServerJob::digest() const {
  const auto bits = [](double value) { return std::bit_cast<std::int64_t>(value); };
  FieldWriter fields;
  for (const ParameterRange& g : keys.groups)
    fields.number(std::int64_t(g.first)).number(std::int64_t(g.count));
  for (const double weight : keys.weights) fields.number(bits(weight));
  fields.number(workers).number(int(synchronous)).number(backup_workers).number(staleness);
  fields.number(int(phases_apart)).number(std::int64_t(optimizer.index()));
  if (const auto* sgd = std::get_if<SgdMomentum>(&optimizer)) {
    fields.number(bits(sgd->momentum)).number(bits(sgd->weight_decay));
  } else {
    const AdamW& adamw = std::get<AdamW>(optimizer);
    fields.number(bits(adamw.beta1)).number(bits(adamw.beta2));
    fields.number(bits(adamw.epsilon)).number(bits(adamw.weight_decay));
  }
  for (const TrainedRange& t : trained)
    fields.number(std::int64_t(t.first)).number(std::int64_t(t.count)).number(int(t.decays));
  return XXH3_64bits(fields.bytes().data(), fields.bytes().size());
}

}  // namespace reckon
