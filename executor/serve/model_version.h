#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sim/model/graph.h"

// A trained model as others take it: a directory of versions, as TensorFlow Serving reads it.
//
//   MODEL/1/plan.yaml          the scenario whose workload is the model, on its own
//   MODEL/1/model.safetensors  the parameters and the running statistics, each with its digest
//                              (executor/train/checkpoint/checkpoint_shard.h)
//   MODEL/2/...                a newer version
//
// A version appears whole or not at all: it is written beside and renamed.
namespace reckon {

/// What cannot be exported or loaded, and why; the text names the file.
struct ModelVersionError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct ModelVersion {
  std::int64_t number = 0;
  std::filesystem::path directory;
  std::filesystem::path plan() const { return directory / "plan.yaml"; }
  std::filesystem::path weights() const { return directory / "model.safetensors"; }
};

/// Complete versions, oldest first: directories whose names are whole numbers from 1. Empty where
/// there is no such directory.
std::vector<ModelVersion> list_versions(const std::filesystem::path& model);

/// A file that plan.yaml names, beside it.
struct VersionFile {
  std::string name, text;
};

struct ExportedVersion : ModelVersion {
  std::string source;                // "the checkpoint at step 1200", "model.safetensors"
  std::vector<std::string> refused;  // newer checkpoints that are damaged, and how: tell the user
};

/// The newest checkpoint of a run directory that is whole, the one that a resume would use, as the
/// next version of `model`, whose directory is made where it is missing. `plan`: what becomes its
/// plan.yaml, with the files that it names. The run's model.safetensors, where that is whole, takes
/// the place of a damaged checkpoint that is no older, and of a missing one. Throws
/// ModelVersionError, CheckpointError and FileError; nothing is left then.
ExportedVersion export_version(const std::filesystem::path& run, const ModelGraph& network,
                               std::string_view plan, const std::filesystem::path& model,
                               std::span<const VersionFile> beside = {});

}  // namespace reckon
