#include "executor/serve/model_version.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <system_error>

#include "executor/train/checkpoint/checkpoint_set.h"
#include "executor/train/checkpoint/checkpoint_shard.h"
#include "executor/train/checkpoint/durable_file.h"
#include "executor/train/parameters.h"
#include "executor/train/records/run_directory.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;

std::optional<std::int64_t> version_number(const std::string& name) {
  std::int64_t number = 0;
  const char* end = name.data() + name.size();
  const auto [stopped, error] = std::from_chars(name.data(), end, number);
  const bool whole = error == std::errc() && stopped == end && number >= 1;
  return whole && name.front() != '0' ? std::optional(number) : std::nullopt;
}

struct Weights {
  CheckpointIdentity identity;
  std::int64_t step = 0;
  std::vector<std::string> names;
  std::vector<std::vector<std::byte>> values;
  std::string source;
  std::vector<std::string> refused;
};

bool has_statistics(const ModelGraph& network) {
  const auto layers = network.layers();
  return std::any_of(layers.begin(), layers.end(), [](const Layer& layer) {
    return std::holds_alternative<BatchNorm>(layer.op);
  });
}

/// All but the optimizer's state, which no answer needs.
Weights of_checkpoint(const fs::path& set) {
  const fs::path file = shard_file(set, 0);
  const ShardHeader header = read_shard_header(file);
  std::vector<std::vector<std::byte>> all;
  std::vector<RestoreSection> targets;
  for (const ShardHeader::Section& section : header.sections) all.emplace_back(section.bytes);
  for (std::size_t k = 0; k < all.size(); ++k) targets.push_back({header.sections[k].name, all[k]});
  read_shard(file, targets);
  Weights weights{.identity = header.identity,
                  .step = header.step,
                  .source = fmt::format("the checkpoint at step {}", header.step)};
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (targets[k].name.starts_with("optimizer.")) continue;
    weights.names.push_back(targets[k].name);
    weights.values.push_back(std::move(all[k]));
  }
  return weights;
}

/// Whether the newest checkpoint, although something of it is damaged, says that these parameters
/// are its own.
bool attested(const fs::path& set, std::span<const std::byte> parameters) {
  try {
    for (const ShardHeader::Section& s : read_shard_header(shard_file(set, 0)).sections)
      if (s.name == "parameters") return s.digest == section_digest(parameters);
  } catch (const std::runtime_error&) {
    // Its header is what is damaged.
  }
  return false;
}

/// nullopt: there are none, they are not enough, or nothing says that they are whole.
std::optional<Weights> of_parameters(const fs::path& run, const ModelGraph& network,
                                     const GoodSet& good) {
  const fs::path file = RunDirectory{run}.parameters();
  if (!fs::exists(file) || has_statistics(network)) return std::nullopt;
  std::vector<std::byte> values = read_bytes(file);
  if (!good.refused.empty() && !attested(good.refused.front().set, values)) return std::nullopt;
  return Weights{
      .identity = {.job = network.name(), .model = network.name(), .ranks = 1, .recipe = {}},
      .names = {"parameters"},
      .values = {std::move(values)},
      .source = file.filename().string()};
}

Weights weights_of(const fs::path& run, const ModelGraph& network) {
  const GoodSet good = newest_good_set(RunDirectory{run}.checkpoints(), nullptr);
  std::optional<Weights> weights;
  if (!good.set || !good.refused.empty()) weights = of_parameters(run, network, good);
  if (!weights && good.set) weights = of_checkpoint(good.set->directory);
  std::vector<std::string> refused;
  for (const GoodSet::Refused& r : good.refused) refused.push_back(r.why);
  if (!weights && !refused.empty())
    throw ModelVersionError(fmt::format("{}: no checkpoint can be used:\n  {}", run.string(),
                                        fmt::join(refused, "\n  ")));
  if (!weights)
    throw ModelVersionError(
        fs::exists(RunDirectory{run}.parameters())
            ? fmt::format("{}: {} keeps running means and variances, which only a checkpoint "
                          "holds, and there is none: train with checkpoints",
                          run.string(), network.name())
            : fmt::format("{}: no run that was trained, neither a checkpoint nor parameters.bin",
                          run.string()));
  weights->refused = std::move(refused);
  return std::move(*weights);
}

void require_size(const Weights& weights, const ModelGraph& network, const fs::path& run) {
  const std::size_t wanted = parameter_layout(network).count * sizeof(float);
  if (weights.names.empty() || weights.names.front() != "parameters" ||
      weights.values.front().size() != wanted)
    throw ModelVersionError(
        fmt::format("{}: the run's weights are not those of {}", run.string(), network.name()));
}

void write_version(const fs::path& directory, const Weights& weights, std::string_view plan,
                   std::span<const VersionFile> beside) {
  std::vector<StateSection> sections;
  for (std::size_t k = 0; k < weights.names.size(); ++k)
    sections.push_back({weights.names[k], weights.values[k]});
  ShardHeader header;
  header.identity = weights.identity;
  header.step = weights.step;
  const ModelVersion version{0, directory};
  write_shard(version.weights(), header, sections);
  for (const VersionFile& file : beside) write_durably(directory / file.name, file.text);
  write_durably(version.plan(), plan);
}

}  // namespace

std::vector<ModelVersion> list_versions(const fs::path& model) {
  std::vector<ModelVersion> versions;
  std::error_code error;
  // `++` would throw where the file system fails in between.
  for (fs::directory_iterator entry(model, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto number = version_number(entry->path().filename().string());
    std::error_code gone;  // between listing and looking
    if (number && entry->is_directory(gone)) versions.push_back({*number, entry->path()});
  }
  std::sort(versions.begin(), versions.end(),
            [](const ModelVersion& a, const ModelVersion& b) { return a.number < b.number; });
  return versions;
}

ExportedVersion export_version(const fs::path& run, const ModelGraph& network,
                               std::string_view plan, const fs::path& model,
                               std::span<const VersionFile> beside) {
  const Weights weights = weights_of(run, network);
  require_size(weights, network, run);
  create_directories_durably(model);
  const auto versions = list_versions(model);
  const std::int64_t number = versions.empty() ? 1 : versions.back().number + 1;
  const fs::path partial = model / fmt::format(".{}.partial", number);
  const ModelVersion version{number, model / std::to_string(number)};
  try {
    fs::remove_all(partial);  // of an export that was killed
    create_directories_durably(partial);
    write_version(partial, weights, plan, beside);
    fs::rename(partial, version.directory);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(partial, ignored);
    throw;
  }
  flush_directory(model);
  return {version, weights.source, weights.refused};
}

}  // namespace reckon
