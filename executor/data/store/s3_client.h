#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/data/store/store.h"

namespace reckon::data {

/// Who asks, and whom.
struct S3Access {
  std::string endpoint;  // "https://s3.eu-central-1.amazonaws.com"
  std::string region;
  std::string key, secret, token;  // "": requests are not signed; no session token
};
/// From the environment; `endpoint` wins. Throws DataError where half of the credentials is there.
S3Access s3_access(const std::string& endpoint);

/// Requests to one bucket, from any thread, over connections that are kept: ListObjectsV2 and
/// GetObject with a range, path-style, signed with AWS Signature Version 4 by libcurl. What may
/// pass (no connection, 429, 5xx) is tried again for some seconds, and a StoreError at the end.
class S3Bucket {
 public:
  S3Bucket(S3Access access, std::string bucket);
  ~S3Bucket();
  S3Bucket(const S3Bucket&) = delete;
  S3Bucket& operator=(const S3Bucket&) = delete;

  /// All objects whose keys begin with `prefix`. Throws DataError.
  std::vector<StoredObject> list(std::string_view prefix) const;
  /// Fills `bytes` from `offset` of the object. Throws DataError.
  void read(std::string_view key, std::int64_t offset, std::span<std::uint8_t> bytes) const;

 private:
  struct Connections;
  S3Access access_;
  std::string bucket_;
  std::unique_ptr<Connections> connections_;
};

/// Percent-encoded but for letters, digits, "-_.~" and the characters of `kept`.
std::string url_encoded(std::string_view text, std::string_view kept);

}  // namespace reckon::data
