#pragma once
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "support/text.h"

namespace reckon::test {

struct Output {
  int code = -1;
  std::string out, err;
};

inline std::string read_all(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A directory of its own for one test, removed at the end.
class Workspace {
 public:
  Workspace() {
    std::string name = (std::filesystem::temp_directory_path() / "reckon-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    directory_ = name;
    // What programs keep of a user's is kept here, not in the home of whoever tests.
    setenv("XDG_DATA_HOME", (directory_ / ".data-home").c_str(), 1);
    setenv("RECKON_PROBE", "off", 1);  // seconds for each test
  }
  ~Workspace() { std::filesystem::remove_all(directory_); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  std::filesystem::path path(const std::string& name) const { return directory_ / name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(path(name).parent_path());
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name).string();
  }

  /// `arguments` are words of the shell; standard output and error are captured.
  Output run(const std::string& arguments, const std::string& environment = "") const {
    return run_shell(environment + " '" RECKON_BINARY_DIR "/bin/reckon' " + arguments);
  }
  /// A line of the shell.
  Output run_shell(const std::string& line) const {
    const std::string command =
        "cd '" + directory_.string() + "' && { " + line + "; } >stdout.txt 2>stderr.txt </dev/null";
    const int status = std::system(command.c_str());
    Output output;
    output.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    output.out = read_all(path("stdout.txt"));
    output.err = read_all(path("stderr.txt"));
    return output;
  }

 private:
  std::filesystem::path directory_;
};

/// A small run that finishes in a moment.
inline const char* const kScenario = R"(name: small
workload:
  model: resnet50_v1_5
  dataset: imagenet
  train: {epochs: 1}
  precision: fp32
  batch_per_accelerator: 64
  strategy: {kind: mirrored}
cluster:
  provider: gcp
  service: gke
  region: us-central1
  zone: us-central1-c
  pools:
    - name: p100
      machine: n1-standard-16
      accelerator: {type: P100-PCIE-16, count: 2}
      nodes: 1
forecast: {replications: 20, seed: 1}
)";

}  // namespace reckon::test
