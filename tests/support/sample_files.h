#pragma once
#include <unistd.h>
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <string>

#include "executor/train/networks.h"

// Files with samples, and networks that take them.
namespace reckon::test {

/// A folder of its own, removed at the end.
struct Folder {
  std::filesystem::path path;
  explicit Folder(const std::string& name)
      : path(std::filesystem::temp_directory_path() /
             ("reckon-samples-" + name + "-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories((path / name).parent_path());
    std::ofstream(path / name, std::ios::binary) << bytes;
    return path / name;
  }
};

inline ModelGraph classifier(const Shape& input, std::int64_t classes) {
  LayerList net(8);
  LayerId x = net.add("image", InputLayer{}, std::vector<LayerId>{});
  x = net.add("flat", Flatten{}, x);
  x = net.add("fc", Linear{elements(input), classes}, x);
  net.add("loss", SoftmaxCrossEntropy{classes}, x);
  return network(SampleUnit::image, input, net);
}

}  // namespace reckon::test
