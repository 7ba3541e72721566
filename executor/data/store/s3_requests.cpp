#ifdef RECKON_WITH_S3
#include "executor/data/store/s3_requests.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

#include "sim/base/text/lower_case.h"
#include "sim/base/unit_text.h"

namespace reckon::data {
namespace {

constexpr Seconds kFirstPause{0.1}, kLongestPause{15};         // doubled with each try
constexpr std::size_t kLongestAnswer = std::size_t{64} << 20;  // of a list: 1,000 keys
constexpr std::size_t kLongestError = std::size_t{64} << 10;
/// SHA-256 of nothing: no request has a body.
constexpr const char* kEmptyBody =
    "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

struct ListDelete {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

class HeaderLines {
 public:
  void add(const std::string& text) {
    curl_slist* const longer = curl_slist_append(lines_.get(), text.c_str());
    if (longer == nullptr) throw DataError("no memory for a request");
    static_cast<void>(lines_.release());
    lines_.reset(longer);
  }
  curl_slist* get() const { return lines_.get(); }

 private:
  std::unique_ptr<curl_slist, ListDelete> lines_;
};

/// One request that is under way.
struct Exchange {
  CURL* handle;
  const S3Request& request;
  S3Answer& answer;
  const DataWatch& watch;
};

std::size_t take_bytes(char* bytes, std::size_t, std::size_t count, void* to) {
  auto& [handle, request, answer, watch] = *static_cast<Exchange*>(to);
  long status = 0;
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  const bool good = status >= 200 && status < 300;
  if (good && request.fills) {
    answer.too_long = count > request.into.size() - answer.filled;
    if (answer.too_long) return 0;
    std::memcpy(request.into.data() + answer.filled, bytes, count);
    answer.filled += count;
    return count;
  }
  const std::size_t most = good ? kLongestAnswer : kLongestError;
  if (answer.text.size() + count > most) return 0;
  answer.text.append(bytes, count);
  return count;
}

std::size_t take_header(char* bytes, std::size_t, std::size_t count, void* to) {
  S3Answer& answer = static_cast<Exchange*>(to)->answer;
  const std::string_view line(bytes, count);
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return count;
  std::string_view value = line.substr(colon + 1);
  value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
  value = value.substr(0, value.find_last_not_of(" \t\r\n") + 1);
  const std::string name = lower_case(line.substr(0, colon));
  if (name == "content-range") answer.content_range = value;
  if (name == "x-amz-bucket-region") answer.bucket_region = value;
  if (name == "location") answer.location = value;
  return count;
}

/// Called about once a second, also while nothing comes. Not 0: the request ends.
int look_for_stop(void* to, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Exchange*>(to)->watch.stopped() ? 1 : 0;
}

bool may_go_better(CURLcode code, const S3Answer& answer) {
  switch (code) {
    case CURLE_OK:
      return answer.status == 408 || answer.status == 429 ||
             (answer.status >= 500 && answer.status != 501) ||
             (answer.status == 400 && parse_store_error(answer.text).code == "RequestTimeout");
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return true;
    default:
      return false;
  }
}

/// Between half of it and all, so that ranks that lost a store together do not come back together.
Seconds jittered(Seconds pause) {
  thread_local std::minstd_rand random{std::random_device{}()};
  return pause * std::uniform_real_distribution<>(0.5, 1)(random);
}

std::string what_came(const S3Answer& answer) {
  if (answer.too_long) return "answers with more than it was asked for: it knows no ranges";
  if (!answer.problem.empty()) return answer.problem;
  const std::string said = parse_store_error(answer.text).text();
  return fmt::format("answers with status {}{}{}", answer.status, said.empty() ? "" : ", ", said);
}

}  // namespace

/// Handles that wait for the next request, each with its connection.
struct S3Requests::Connections {
  struct Delete {
    void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  };
  using Handle = std::unique_ptr<CURL, Delete>;
  std::mutex mutex;
  std::vector<Handle> idle;

  Handle take() {
    const std::lock_guard lock(mutex);
    if (idle.empty()) {
      Handle made(curl_easy_init());
      if (!made) throw DataError("libcurl cannot be started");
      return made;
    }
    Handle handle = std::move(idle.back());
    idle.pop_back();
    return handle;
  }
  void give_back(Handle handle) {
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(handle));
  }
};

S3Requests::S3Requests(S3Access access, DataWatch watch)
    : access_(std::move(access)),
      watch_(std::move(watch)),
      connections_(std::make_unique<Connections>()) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}
S3Requests::~S3Requests() = default;

S3Answer S3Requests::ask_once(const S3Request& request) const {
  Connections::Handle handle = connections_->take();
  CURL* const curl = handle.get();
  curl_easy_reset(curl);  // connections stay
  S3Answer answer;
  Exchange exchange{curl, request, answer, watch_};
  HeaderLines headers;
  char problem[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, problem);
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 10L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);  // bytes a second, for
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, 30L);  // so many seconds: it has stopped
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &take_bytes);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &exchange);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, &take_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &look_for_stop);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &exchange);
  const std::string signer = fmt::format("aws:amz:{}:s3", access_.region);
  const std::string who = access_.key + ":" + access_.secret;
  if (!access_.key.empty()) {
    curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, signer.c_str());
    curl_easy_setopt(curl, CURLOPT_USERPWD, who.c_str());
    headers.add(kEmptyBody);
    if (!access_.token.empty()) headers.add("x-amz-security-token: " + access_.token);
  }
  if (!request.if_match.empty()) headers.add("If-Match: " + request.if_match);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  if (!request.range.empty()) curl_easy_setopt(curl, CURLOPT_RANGE, request.range.c_str());
  const CURLcode code = curl_easy_perform(curl);
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.status);
  curl_off_t wait = 0;
  curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &wait);
  answer.asks_to_wait = std::chrono::seconds(wait);
  if (code != CURLE_OK) answer.problem = *problem != '\0' ? problem : curl_easy_strerror(code);
  answer.may_pass = may_go_better(code, answer);
  connections_->give_back(std::move(handle));
  if (code == CURLE_ABORTED_BY_CALLBACK) throw ReadingStopped();
  return answer;
}

void S3Requests::wait(Seconds time) const {
  constexpr Seconds kBetweenLooks{0.1};
  for (; time.count() > 0; time -= kBetweenLooks) {
    if (watch_.stopped()) throw ReadingStopped();
    std::this_thread::sleep_for(std::min(time, kBetweenLooks));
  }
}

S3Answer S3Requests::ask(const S3Request& request, const std::string& place) const {
  constexpr int kTriesUnsaid = 5;
  const auto begin = std::chrono::steady_clock::now();
  Seconds pause = kFirstPause;
  for (int k = 1;; ++k, pause = std::min(2 * pause, kLongestPause)) {
    S3Answer answer = ask_once(request);
    answer.tries = k;
    answer.tried_for = std::chrono::steady_clock::now() - begin;
    if (answer.good() || !answer.may_pass) return answer;
    const Seconds next = std::max(jittered(pause), answer.asks_to_wait);
    if (answer.tried_for + next > watch_.patience) return answer;
    if (k == kTriesUnsaid && watch_.warn)
      watch_.warn(fmt::format("{}: {} {}: it is asked again for {}", place, access_.endpoint,
                              what_came(answer), format_duration(watch_.patience)));
    wait(next);
  }
}

std::string S3Requests::remedy(const S3Answer& answer, const StoreWords& said) const {
  const std::string& region = answer.bucket_region.empty() ? said.region : answer.bucket_region;
  const bool moved = answer.status == 301 || answer.status == 307 || answer.status == 400;
  if (moved && !region.empty() && region != access_.region)
    return fmt::format(": the bucket is in region {}: set AWS_REGION={}{}", region, region,
                       access_.names_endpoint
                           ? ", and workload.data.endpoint or AWS_ENDPOINT_URL to that region's"
                           : "");
  if (answer.status >= 300 && answer.status < 400)
    return fmt::format(
        ": set workload.data.endpoint or AWS_ENDPOINT_URL to where the bucket is{}{}",
        answer.location.empty() ? "" : ": ", answer.location);
  if (said.code == "RequestTimeTooSkewed") return ": set the clock of this machine";
  const bool token = said.code == "ExpiredToken" || said.code == "InvalidToken";
  if (answer.status != 401 && answer.status != 403 && !token) return "";
  if (access_.key.empty())
    return ": the request is not signed: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (of "
           "temporary keys AWS_SESSION_TOKEN, too)";
  return fmt::format(
      ": it is signed by AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY{} for region {} (AWS_REGION): "
      "are they right, and may that key list and read the bucket?",
      access_.token.empty() ? " (AWS_SESSION_TOKEN is not set)" : " with AWS_SESSION_TOKEN",
      access_.region);
}

void S3Requests::refuse(const S3Answer& answer, const std::string& place,
                        const std::string& what) const {
  const std::string text = fmt::format("{}: {} {}", place, access_.endpoint, what);
  if (!answer.may_pass) throw DataError(text);
  throw StoreError(fmt::format(
      "{} (asked {} times in {}{})", text, answer.tries, format_duration(answer.tried_for),
      answer.asks_to_wait.count() > 0
          ? ", wants to be asked again in " + format_duration(answer.asks_to_wait)
          : ""));
}

void S3Requests::refuse(const S3Answer& answer, const std::string& place) const {
  std::string what = what_came(answer);
  if (answer.problem.empty()) {
    while (what.ends_with('.')) what.pop_back();  // of the store's own sentence
    what += remedy(answer, parse_store_error(answer.text));
  }
  refuse(answer, place, what);
}

}  // namespace reckon::data

#endif
