#include <fmt/format.h>

#include "executor/data/store/store.h"
#include "sim/scenario/spec/workload.h"
#ifdef RECKON_WITH_S3
#include "executor/data/store/s3_client.h"
#endif

namespace reckon::data {

#ifdef RECKON_WITH_S3

namespace {

class BucketStore final : public Store {
 public:
  BucketStore(std::string bucket, const std::string& key, const std::string& endpoint,
              const DataWatch& watch)
      : bucket_(s3_access(endpoint), bucket, watch), name_(std::move(bucket)) {
    Chosen chosen = choose_objects(key, bucket_.list(key));
    if (chosen.objects.empty())
      throw DataError(fmt::format("s3://{}/{}: there are no objects", name_, key));
    objects_ = std::move(chosen.objects);
    root_ = std::move(chosen.root);
    is_folder_ = chosen.is_folder;
  }
  std::string place_of(const StoredObject& object) const override {
    return fmt::format("s3://{}/{}{}", name_, root_, object.name);
  }
  void read(const StoredObject& object, std::int64_t offset,
            std::span<std::uint8_t> bytes) const override {
    bucket_.read(root_ + object.name, object, offset, bytes);
  }
  std::int64_t block() const override { return std::int64_t{1} << 20; }

 private:
  S3Bucket bucket_;
  std::string name_, root_;
};

}  // namespace

std::unique_ptr<Store> open_bucket(const std::string& location, const std::string& endpoint,
                                   const DataWatch& watch) {
  const std::string path = location.substr(std::string_view("s3://").size());
  const std::size_t slash = path.find('/');
  if (path.empty() || slash == 0)
    throw DataError(fmt::format("{}: names no bucket: s3://BUCKET/KEY is expected", location));
  const std::string key = slash == std::string::npos ? "" : path.substr(slash + 1);
  return std::make_unique<BucketStore>(path.substr(0, slash), key, endpoint, watch);
}

#else

std::unique_ptr<Store> open_bucket(const std::string& location, const std::string&,
                                   const DataWatch&) {
  throw DataError(
      fmt::format("{}: this build reads no stores: it was made without libcurl", location));
}

#endif

std::unique_ptr<Store> open_store(const std::string& location, const std::string& endpoint,
                                  const DataWatch& watch) {
  return is_store_location(location) ? open_bucket(location, endpoint, watch)
                                     : open_files(location, watch);
}

}  // namespace reckon::data
