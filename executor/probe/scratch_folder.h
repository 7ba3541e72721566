#pragma once
#include <filesystem>

namespace reckon {

/// A new folder in `directory` (made where it is missing), gone with all in it at the end of the
/// scope. Throws FileError.
class ScratchFolder {
 public:
  explicit ScratchFolder(const std::filesystem::path& directory);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace reckon
