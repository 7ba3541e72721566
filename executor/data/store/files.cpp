#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <mutex>

#include "executor/data/store/store.h"
#include "executor/train/data/file.h"

namespace reckon::data {
namespace {

namespace fs = std::filesystem;

/// All files below `folder`, at any depth, by their names below it; links are followed.
std::vector<StoredObject> files_below(const fs::path& folder) {
  std::vector<StoredObject> files;
  for (const auto& entry :
       fs::recursive_directory_iterator(folder, fs::directory_options::follow_directory_symlink))
    if (entry.is_regular_file())
      files.push_back({entry.path().lexically_relative(folder).generic_string(),
                       static_cast<std::int64_t>(entry.file_size())});
  return files;
}

std::vector<StoredObject> files_that_begin(const fs::path& folder, const std::string& name) {
  std::vector<StoredObject> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().filename().string().starts_with(name))
      files.push_back(
          {entry.path().filename().string(), static_cast<std::int64_t>(entry.file_size())});
  return files;
}

/// Shards may be more than a process may have open at once: the last file that was read stays open.
class FileStore final : public Store {
 public:
  explicit FileStore(const fs::path& path) {
    try {
      find(path);
    } catch (const fs::filesystem_error& e) {
      throw DataError(fmt::format("{}: {}", path.string(), e.code().message()));
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
    const std::lock_guard lock(mutex_);
    last_ = file;
    last_name_ = object.name;
    return file;
  }

  void find(const fs::path& path) {
    is_folder_ = fs::is_directory(path);
    root_ = is_folder_ ? path : path.parent_path();
    if (is_folder_) {
      objects_ = files_below(path);
    } else if (fs::is_regular_file(path)) {
      objects_ = {{path.filename().string(), static_cast<std::int64_t>(fs::file_size(path))}};
    } else if (fs::is_directory(root_.empty() ? "." : root_)) {
      objects_ = files_that_begin(root_.empty() ? "." : root_, path.filename().string());
    }
  }

  fs::path root_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const DataFile> last_;
  mutable std::string last_name_;
};

}  // namespace

std::unique_ptr<Store> open_files(const std::string& path) {
  return std::make_unique<FileStore>(path);
}

}  // namespace reckon::data
