#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/data/store/s3_answers.h"
#include "executor/data/store/store.h"

namespace reckon::data {

/// Who asks, and whom.
struct S3Access {
  std::string endpoint;  // "https://s3.eu-central-1.amazonaws.com"
  std::string region;
  std::string key, secret, token;  // "": requests are not signed; no session token
  bool names_endpoint = true;      // somebody did; else it is Amazon's of the region
};
/// From the environment; `endpoint` wins. Throws DataError where half of the credentials is there.
S3Access s3_access(const std::string& endpoint);

/// Requests to one bucket, from any thread, over connections that are kept: ListObjectsV2 and
/// GetObject with a range, path-style, signed with AWS Signature Version 4 by libcurl. What may
/// pass (no connection, 408, 429, 5xx, RequestTimeout) is tried again for DataWatch::patience, and
/// a StoreError at the end.
class S3Bucket {
 public:
  S3Bucket(S3Access access, std::string bucket, DataWatch watch = {});
  ~S3Bucket();
  S3Bucket(const S3Bucket&) = delete;
  S3Bucket& operator=(const S3Bucket&) = delete;

  /// All objects whose keys begin with `prefix`. Throws DataError.
  std::vector<StoredObject> list(std::string_view prefix) const;
  /// Fills `bytes` from `offset` of the object of that key. Throws DataError, also where its
  /// version or size are others than `object` says.
  void read(std::string_view key, const StoredObject& object, std::int64_t offset,
            std::span<std::uint8_t> bytes) const;

 private:
  /// Where a list goes on: both "": it begins.
  struct ListPlace {
    std::string token;   // of the answer before
    std::string behind;  // the last key that it had, where it gave no token
  };
  ObjectList list_page(std::string_view prefix, const ListPlace& from) const;

  std::string bucket_;
  std::unique_ptr<class S3Requests> requests_;
};

/// Percent-encoded but for letters, digits, "-_.~" and the characters of `kept`.
std::string url_encoded(std::string_view text, std::string_view kept);

}  // namespace reckon::data
