#include "executor/data/store/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "sim/scenario/spec/workload.h"

namespace reckon::data {

void Store::damaged(const StoredObject& object, std::int64_t offset,
                    const std::string& what) const {
  throw DataError(fmt::format("{}: at byte {}: {}", place_of(object), offset, what));
}

void require_known_scheme(const std::string& location) {
  const std::size_t end = location.find("://");
  const auto is_of_scheme = [](unsigned char c) { return std::isalnum(c) || c == '+' || c == '-'; };
  if (end == location.npos || end == 0 || is_store_location(location) ||
      !std::all_of(location.begin(), location.begin() + std::ptrdiff_t(end), is_of_scheme))
    return;
  throw DataError(fmt::format(
      "{}: {}:// is not read: a path, or s3://BUCKET/KEY (in small letters) of Amazon S3 "
      "or of a store of its protocol, which workload.data.endpoint names (of Google "
      "Cloud Storage, with an HMAC key: https://storage.googleapis.com)",
      location, location.substr(0, end)));
}

Chosen choose_objects(std::string_view wanted, std::vector<StoredObject> all) {
  std::ranges::sort(all, {}, &StoredObject::name);
  Chosen chosen;
  const std::string folder =
      wanted.empty() || wanted.ends_with('/') ? std::string(wanted) : std::string(wanted) + '/';
  std::erase_if(all, [&](const StoredObject& o) {
    // Stores have objects that only stand for a folder: empty, with a '/' at the end.
    return !o.name.starts_with(wanted) || o.name.ends_with('/');
  });
  const bool is_file = std::ranges::any_of(all, [&](const auto& o) { return o.name == wanted; });
  const bool has_folder =
      std::ranges::any_of(all, [&](const auto& o) { return o.name.starts_with(folder); });
  chosen.is_folder = !is_file && has_folder;
  const std::size_t slash = wanted.rfind('/');
  chosen.root = chosen.is_folder                  ? folder
                : slash == std::string_view::npos ? ""
                                                  : std::string(wanted.substr(0, slash + 1));
  for (StoredObject& object : all) {
    const bool taken = is_file ? object.name == wanted
                       : chosen.is_folder
                           ? object.name.starts_with(folder)
                           : object.name.find('/', wanted.size()) == object.name.npos;
    if (!taken) continue;
    object.name.erase(0, chosen.root.size());
    chosen.objects.push_back(std::move(object));
  }
  return chosen;
}

}  // namespace reckon::data
