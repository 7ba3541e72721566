#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "executor/data/store/s3_answers.h"
#include "executor/data/store/s3_client.h"
#include "executor/data/watch.h"

namespace reckon::data {

/// A GET. Bytes of a good answer go to `into` where `fills` says so, else to S3Answer::text.
struct S3Request {
  std::string url;
  std::string range;     // "0-99"; "": all
  std::string if_match;  // the only version that is wanted; "": any
  std::span<std::uint8_t> into;
  bool fills = false;
};

struct S3Answer {
  long status = 0;      // 0: none came
  std::string problem;  // of the connection; "": an answer came whole
  std::string text;     // of what is no filling
  std::size_t filled = 0;
  bool too_long = false;                               // more than `into` holds
  bool may_pass = false;                               // another try may go better
  std::string content_range, bucket_region, location;  // headers
  Seconds asks_to_wait{};                              // Retry-After
  int tries = 1;
  Seconds tried_for{};

  bool good() const { return problem.empty() && status >= 200 && status < 300; }
};

/// Connections to a store that are kept; signed requests, from any thread, tried again while they
/// may go better.
class S3Requests {
 public:
  S3Requests(S3Access access, DataWatch watch);
  ~S3Requests();
  S3Requests(const S3Requests&) = delete;
  S3Requests& operator=(const S3Requests&) = delete;

  const S3Access& access() const { return access_; }
  const DataWatch& watch() const { return watch_; }
  /// `place`: what is asked for, for messages. Throws ReadingStopped.
  S3Answer ask(const S3Request& request, const std::string& place) const;
  /// Throws StoreError of an answer that may pass, else DataError: "PLACE: ENDPOINT WHAT", with how
  /// often it was asked and what to do.
  [[noreturn]] void refuse(const S3Answer& answer, const std::string& place,
                           const std::string& what) const;
  /// Likewise, of one that is not good.
  [[noreturn]] void refuse(const S3Answer& answer, const std::string& place) const;

 private:
  struct Connections;
  S3Answer ask_once(const S3Request& request) const;
  void wait(Seconds time) const;
  std::string remedy(const S3Answer& answer, const StoreWords& said) const;

  S3Access access_;
  DataWatch watch_;
  std::unique_ptr<Connections> connections_;
};

}  // namespace reckon::data
