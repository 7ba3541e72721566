#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <optional>
#include <system_error>

#include "executor/data/store/store.h"
#include "executor/train/data/file.h"

namespace reckon::data {
namespace {

namespace fs = std::filesystem;

/// Does the link lead to a folder that it lies in?
bool leads_back(const fs::path& link) {
  const fs::path target = fs::canonical(link);
  fs::path folder = fs::canonical(link.parent_path());
  while (folder != target && folder != folder.parent_path()) folder = folder.parent_path();
  return folder == target;
}

/// nullopt: it is no file, or a link to nothing. Throws filesystem_error.
std::optional<StoredObject> file_at(const fs::path& path, std::string name) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    throw fs::filesystem_error("stat", path, std::error_code(errno, std::generic_category()));
  }
  if (!S_ISREG(status.st_mode)) return std::nullopt;
  return StoredObject{
      .name = std::move(name), .size = status.st_size, .modified = nanoseconds_of(status.st_mtim)};
}

/// All files below `folder`, at any depth, by their names below it; links are followed.
std::vector<StoredObject> files_below(const fs::path& folder, const DataWatch& watch) {
  std::vector<StoredObject> files;
  for (const auto& entry :
       fs::recursive_directory_iterator(folder, fs::directory_options::follow_directory_symlink)) {
    watch.tell();
    if (entry.is_directory()) {
      if (entry.is_symlink() && leads_back(entry.path()))
        throw DataError(
            fmt::format("{}: the link leads back to a folder that it lies in: remove it",
                        entry.path().string()));
      continue;
    }
    if (auto file = file_at(entry.path(), entry.path().lexically_relative(folder).generic_string()))
      files.push_back(std::move(*file));
  }
  return files;
}

std::vector<StoredObject> files_that_begin(const fs::path& folder, const std::string& name,
                                           const DataWatch& watch) {
  std::vector<StoredObject> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    watch.tell();
    std::string own = entry.path().filename().string();
    if (!own.starts_with(name)) continue;
    if (auto file = file_at(entry.path(), std::move(own))) files.push_back(std::move(*file));
  }
  return files;
}

/// Shards may be more than a process may have open at once: the last file that was read stays open.
class FileStore final : public Store {
 public:
  FileStore(const fs::path& path, DataWatch watch) : watch_(std::move(watch)) {
    try {
      find(path);
    } catch (const fs::filesystem_error& e) {
      throw DataError(fmt::format("{}: {}", (e.path1().empty() ? path : e.path1()).string(),
                                  e.code().message()));
    }
    if (objects_.empty()) throw DataError(fmt::format("{}: there are no files", path.string()));
    std::ranges::sort(objects_, {}, &StoredObject::name);
  }

  std::string place_of(const StoredObject& object) const override {
    return (root_ / object.name).string();
  }
  void read(const StoredObject& object, std::int64_t offset,
            std::span<std::uint8_t> bytes) const override {
    open(object)->read(offset, bytes);
    watch_.tell();
  }
  /// Of the system's memory: what is skipped is not read.
  std::int64_t block() const override { return std::int64_t{1} << 12; }

 private:
  std::shared_ptr<const DataFile> open(const StoredObject& object) const {
    {
      const std::lock_guard lock(mutex_);
      if (last_ && last_name_ == object.name) return last_;
    }
    auto file = std::make_shared<const DataFile>(root_ / object.name);
    if (file->size() != object.size)
      throw DataError(fmt::format("{}: has {} bytes now, it had {} when the run began",
                                  place_of(object), file->size(), object.size));
    if (file->modified() != object.modified)
      throw DataError(
          fmt::format("{}: was changed after the run began: start again to train on what is there "
                      "now",
                      place_of(object)));
    const std::lock_guard lock(mutex_);
    last_ = file;
    last_name_ = object.name;
    return file;
  }

  void find(const fs::path& path) {
    is_folder_ = fs::is_directory(path);
    root_ = is_folder_ ? path : path.parent_path();
    if (is_folder_) {
      objects_ = files_below(path, watch_);
    } else if (auto file = file_at(path, path.filename().string())) {
      objects_ = {std::move(*file)};
    } else if (fs::is_directory(root_.empty() ? "." : root_)) {
      objects_ = files_that_begin(root_.empty() ? "." : root_, path.filename().string(), watch_);
    }
  }

  DataWatch watch_;
  fs::path root_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const DataFile> last_;
  mutable std::string last_name_;
};

}  // namespace

std::unique_ptr<Store> open_files(const std::string& path, const DataWatch& watch) {
  return std::make_unique<FileStore>(path, watch);
}

}  // namespace reckon::data
