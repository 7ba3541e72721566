#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/data/watch.h"
#include "executor/train/data/source.h"

// Where samples lie: files of this machine, or objects of a store that speaks the protocol of
// Amazon S3. Formats read both through this one interface.
namespace reckon::data {

/// A store that does not answer, or answers that it cannot just now: another start may help.
struct StoreError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A file or an object, by its name below the store's root. Parts of a name are apart by '/'.
struct StoredObject {
  std::string name;
  std::int64_t size = 0;      // bytes
  std::string version{};      // of a store: its ETag; "": it gives none
  std::int64_t modified = 0;  // of a file: nanoseconds since 1970
  friend bool operator==(const StoredObject&, const StoredObject&) = default;
};

class Store {
 public:
  virtual ~Store() = default;

  /// What lies at the location that the store was opened for, in the order of the names' bytes:
  /// the one file of that name, else all files below the folder of that name, at any depth, else
  /// the files whose names begin so ("data/train-" has data/train-00000-of-00002). At least one.
  const std::vector<StoredObject>& objects() const { return objects_; }
  /// Whether it is a folder of that name.
  bool is_folder() const { return is_folder_; }
  /// For messages: its path, or s3://BUCKET/KEY.
  virtual std::string place_of(const StoredObject& object) const = 0;

  /// All of `bytes`, from `offset` of the object. From any thread. Throws DataError: it cannot be
  /// read, ends too early, or is another one than when the store was opened; StoreError.
  virtual void read(const StoredObject& object, std::int64_t offset,
                    std::span<std::uint8_t> bytes) const = 0;
  /// Bytes that are worth one request: who reads on reads so many at once.
  virtual std::int64_t block() const = 0;

  /// Throws DataError: "PLACE: at byte OFFSET: WHAT".
  [[noreturn]] void damaged(const StoredObject& object, std::int64_t offset,
                            const std::string& what) const;

 protected:
  std::vector<StoredObject> objects_;
  bool is_folder_ = false;
};

/// `location`: a path, or s3://BUCKET/KEY. `endpoint`: of the store, "http://127.0.0.1:4568"; "":
/// AWS_ENDPOINT_URL, else that of Amazon. Credentials and region come from AWS_ACCESS_KEY_ID,
/// AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and AWS_REGION; without a key requests are not signed.
/// Throws DataError: there is nothing, or it is not for us; StoreError; ReadingStopped, also later.
std::unique_ptr<Store> open_store(const std::string& location, const std::string& endpoint,
                                  const DataWatch& watch = {});
/// Throws DataError where the location is neither a path nor of a store that is read.
void require_known_scheme(const std::string& location);

/// Of objects whose names all begin with `wanted`, what Store::objects() says. The names that
/// remain are without the folder's.
struct Chosen {
  std::vector<StoredObject> objects;
  std::string root;  // with a '/' at its end where it is not empty
  bool is_folder = false;
};
Chosen choose_objects(std::string_view wanted, std::vector<StoredObject> all);

std::unique_ptr<Store> open_files(const std::string& path, const DataWatch& watch = {});
std::unique_ptr<Store> open_bucket(const std::string& location, const std::string& endpoint,
                                   const DataWatch& watch = {});

}  // namespace reckon::data
