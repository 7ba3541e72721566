#include "executor/probe/scratch_folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "executor/train/checkpoint/durable_file.h"

namespace reckon {

ScratchFolder::ScratchFolder(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error)
    throw FileError(fmt::format("cannot create {}: {}", directory.string(), error.message()));
  std::string name = (directory / "reckon-probe-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw FileError(
        fmt::format("cannot create a folder in {}: {}", directory.string(), std::strerror(errno)));
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace reckon
