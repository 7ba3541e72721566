#pragma once
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "executor/train/checkpoint/checkpoint.h"
#include "support/text.h"

namespace reckon::test {

/// A directory of its own for one test, removed at the end.
class Scratch {
 public:
  explicit Scratch(const std::filesystem::path& under = std::filesystem::temp_directory_path()) {
    std::string name = (under / "reckon-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Where fsync costs nothing, for tests that kill processes (a killed process loses nothing that it
/// wrote to a file, on whatever file system).
inline std::filesystem::path memory_directory() {
  const std::filesystem::path memory = "/dev/shm";
  return ::access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
}

/// State of one rank: weights and momenta that depend on the rank and the step, so that a mix-up
/// shows.
struct ToyState {
  std::vector<float> weights = std::vector<float>(1000);
  std::vector<float> momenta = std::vector<float>(500);

  static ToyState at(std::int64_t step, int rank) {
    ToyState s;
    std::iota(s.weights.begin(), s.weights.end(), float(step * 10 + rank));
    std::iota(s.momenta.begin(), s.momenta.end(), -float(step * 10 + rank));
    return s;
  }
  std::vector<StateTensor> tensors() const {
    return {{whole_tensor("weights", {40, 25}), std::as_bytes(std::span(weights))},
            {whole_tensor("momenta", {500}), std::as_bytes(std::span(momenta))}};
  }
  std::vector<RestoreTensor> targets() {
    return {{whole_tensor("weights", {40, 25}), std::as_writable_bytes(std::span(weights))},
            {whole_tensor("momenta", {std::int64_t(momenta.size())}),
             std::as_writable_bytes(std::span(momenta))}};
  }
  friend bool operator==(const ToyState&, const ToyState&) = default;
};

inline CheckpointOptions toy_options(const std::filesystem::path& directory, int rank = 0,
                                     int ranks = 1) {
  CheckpointOptions o;
  o.directory = directory;
  o.identity = {"job", "mlp 1500 sgd", ranks};
  o.rank = rank;
  o.deadline = Seconds{5};
  return o;
}

/// All ranks of a toy job save one step, and wait for it.
inline void save_toy(const std::filesystem::path& directory, std::int64_t step, int ranks = 1) {
  for (int rank = ranks - 1; rank >= 0; --rank) {  // rank 0 waits for the others' parts
    CheckpointStore store(toy_options(directory, rank, ranks));
    store.save(step, {{"sample", step * 32}}, ToyState::at(step, rank).tensors());
    store.finish();
  }
}

/// All of one tensor of floats, as it is saved.
inline StateTensor float_tensor(const std::string& name, std::span<const float> values) {
  return {whole_tensor(name, {std::int64_t(values.size())}), std::as_bytes(values)};
}

/// A set as the reckon before checkpoints were safetensors wrote it: of a toy job of one rank, at
/// step 40.
inline void write_old_set(const std::filesystem::path& set) {
  std::filesystem::create_directories(set);
  std::ofstream(set / "rank-0.ckpt") << "RCKNCKPT";
  std::ofstream(set / "manifest.json")
      << R"({"attempt":0,"job":"job","model":"mlp 1500 sgd","ranks":1,"schema_version":1,)"
      << R"("shards":[{"bytes":8,"file":"rank-0.ckpt","header_xxh3":1}],"step":40,)"
      << R"("xxh3":5403537055328272363})";
}

inline void flip_bit(const std::filesystem::path& file, std::size_t byte) {
  std::fstream f(file, std::ios::binary | std::ios::in | std::ios::out);
  f.seekg(std::streamoff(byte));
  const char c = char(f.get() ^ 0x10);
  f.seekp(std::streamoff(byte));
  f.put(c);
}

/// The message of the exception that `f` throws; "" where it throws none.
template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

}  // namespace reckon::test
