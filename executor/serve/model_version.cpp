#include "executor/serve/model_version.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <system_error>

#include "executor/train/checkpoint/checkpoint_set.h"
#include "executor/train/checkpoint/checkpoint_shard.h"
#include "executor/train/checkpoint/durable_file.h"
#include "executor/train/checkpoint/tensor_reader.h"
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
  std::vector<TensorSlice> tensors;
  std::vector<std::vector<std::byte>> values;
  std::string source;
  std::vector<std::string> refused;
};

/// All but the optimizer's state, which no answer needs.
Weights read_weights(std::vector<fs::path> files, std::string source) {
  const TensorReader reader(std::move(files));
  Weights weights{.identity = reader.header(0).identity,
                  .step = reader.header(0).step,
                  .source = std::move(source)};
  for (const auto& [name, tensor] : reader.tensors()) {
    if (name.starts_with(kOptimizerTensors)) continue;
    weights.tensors.push_back(tensor);
    reader.read(tensor, weights.values.emplace_back(bytes_of(tensor)));
  }
  return weights;
}

Weights of_checkpoint(const CheckpointSet& set, const Manifest& manifest) {
  return read_weights(shard_files(set.directory, manifest.identity.ranks),
                      fmt::format("the checkpoint at step {}", set.step));
}

/// What the run left at its end, where that is whole and not older than `step`. What is wrong with
/// it becomes one of `refused`.
std::optional<Weights> of_end(const fs::path& run, std::int64_t step,
                              std::vector<std::string>& refused) {
  const fs::path file = RunDirectory{run}.weights();
  if (!fs::exists(file)) return std::nullopt;
  try {
    if (read_shard_header(file).step >= step) return read_weights({file}, file.filename().string());
  } catch (const CheckpointError& e) {
    refused.emplace_back(e.what());
  }
  return std::nullopt;
}

Weights weights_of(const fs::path& run) {
  const GoodSet good = newest_good_set(RunDirectory{run}.checkpoints(), nullptr);
  std::vector<std::string> refused;
  for (const GoodSet::Refused& r : good.refused) refused.push_back(r.why);
  std::optional<Weights> weights;
  if (!good.set || !good.refused.empty())
    weights = of_end(run, good.set ? good.set->step : 0, refused);
  if (!weights && good.set) weights = of_checkpoint(*good.set, good.manifest);
  if (!weights && !refused.empty())
    throw ModelVersionError(fmt::format("{}: nothing that was trained can be used:\n  {}",
                                        run.string(), fmt::join(refused, "\n  ")));
  if (!weights)
    throw ModelVersionError(fmt::format("{}: no run that was trained, neither a checkpoint nor {}",
                                        run.string(),
                                        RunDirectory{run}.weights().filename().string()));
  weights->refused = std::move(refused);
  return std::move(*weights);
}

void require_network(const Weights& weights, const ModelGraph& network, const fs::path& run) {
  for (const ParameterSlot& slot : parameter_layout(network).slots)
    if (std::ranges::find(weights.tensors, whole_tensor(slot.name, slot.shape)) ==
        weights.tensors.end())
      throw ModelVersionError(fmt::format(
          "{}: the run's weights are not those of {}: {} has '{}' of shape {}", run.string(),
          network.name(), network.name(), slot.name, to_text(slot.shape)));
}

void write_version(const fs::path& directory, const Weights& weights, std::string_view plan,
                   std::span<const VersionFile> beside) {
  std::vector<StateTensor> tensors;
  for (std::size_t k = 0; k < weights.tensors.size(); ++k)
    tensors.push_back({weights.tensors[k], weights.values[k]});
  ShardHeader header;
  header.identity = weights.identity;
  header.step = weights.step;
  const ModelVersion version{0, directory};
  write_shard(version.weights(), header, tensors);
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
  const Weights weights = weights_of(run);
  require_network(weights, network, run);
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
