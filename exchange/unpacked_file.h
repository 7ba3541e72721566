#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/mapped_file.h"

namespace reckon {

/// The bytes of a file; of one that is packed with gzip (by its first bytes, whatever its name),
/// what it holds. A plain file is mapped, so that it may be larger than memory; what a packed one
/// holds is kept in memory, at most kLongestStream. Throws std::runtime_error with the path and the
/// reason: as MappedFile, not gzip behind its first bytes, cut short, too large (unpack it first).
class UnpackedFile {
 public:
  explicit UnpackedFile(const std::filesystem::path& file);
  std::string_view bytes() const { return packed_ ? std::string_view(text_) : file_.bytes(); }

 private:
  MappedFile file_;
  bool packed_ = false;
  std::string text_;
};

}  // namespace reckon
