#pragma once
#include <functional>
#include <string>
#include <vector>

#include "executor/data/store/store.h"

namespace reckon::data {

/// A file in a tar archive, and where its bytes are.
struct TarMember {
  std::string name;
  std::int64_t offset = 0, size = 0;
  std::string begin;  // its first bytes, where they were asked for
  friend bool operator==(const TarMember&, const TarMember&) = default;
};

/// The regular files of an archive, in its order: ustar [POSIX.1-2017, pax, "ustar Interchange
/// Format"] with the long names of GNU tar and the extended headers (path, size) of pax. Of their
/// bytes only the first are read, of those that `bytes_wanted` names: so many. Throws DataError: a
/// header whose checksum is wrong, a file that is cut off, an archive without a block of zeros at
/// its end (two are written; GNU tar reads one, with a warning). Sparse files are refused.
std::vector<TarMember> tar_members(
    const Store& store, const StoredObject& archive,
    const std::function<std::int64_t(const std::string& name)>& bytes_wanted);

}  // namespace reckon::data
