#pragma once
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "executor/kubernetes/kubectl.h"

namespace reckon::test {

/// A program of the shell in kubectl's place, in a directory of its own, which is its working
/// directory as well.
class FakeKubectl {
 public:
  explicit FakeKubectl(const std::string& script) {
    std::string name = (std::filesystem::temp_directory_path() / "reckon-kubectl-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    directory_ = name;
    std::ofstream(program()) << "#!/bin/sh\ncd '" << name << "'\n" << script;
    std::filesystem::permissions(program(), std::filesystem::perms::owner_all);
  }
  ~FakeKubectl() { std::filesystem::remove_all(directory_); }
  FakeKubectl(const FakeKubectl&) = delete;
  FakeKubectl& operator=(const FakeKubectl&) = delete;

  std::string program() const { return (directory_ / "kubectl").string(); }
  kubernetes::Kubectl kubectl() const {
    return kubernetes::Kubectl({.program = program(), .context = {}, .name_space = "ns"});
  }
  void write(const std::string& file, const std::string& text) const {
    // Whole or not at all: the program may be reading.
    std::ofstream(directory_ / "half-written") << text;
    std::filesystem::rename(directory_ / "half-written", directory_ / file);
  }
  std::string read(const std::string& file) const {
    std::ifstream in(directory_ / file);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::filesystem::path directory_;
};

}  // namespace reckon::test
