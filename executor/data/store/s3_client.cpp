#ifdef RECKON_WITH_S3
#include "executor/data/store/s3_client.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include "executor/data/store/s3_answers.h"

namespace reckon::data {
namespace {

constexpr int kTries = 5;
constexpr std::chrono::milliseconds kFirstPause{100};          // doubled with each try
constexpr std::size_t kLongestAnswer = std::size_t{64} << 20;  // of a list: 1,000 keys
constexpr std::size_t kLongestError = std::size_t{64} << 10;
/// SHA-256 of nothing: no request has a body.
constexpr const char* kEmptyBody =
    "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

struct ListDelete {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

/// What a request brought. Bytes go to `into` where that is set, else to `text`.
struct Answer {
  std::span<std::uint8_t> into;
  bool fills = false;
  CURL* handle = nullptr;
  std::size_t filled = 0;
  bool too_long = false;
  std::string text;
  long status = 0;
  CURLcode code = CURLE_OK;
  std::string problem;  // of the connection
};

std::size_t take_bytes(char* bytes, std::size_t, std::size_t count, void* to) {
  auto& answer = *static_cast<Answer*>(to);
  long status = 0;
  curl_easy_getinfo(answer.handle, CURLINFO_RESPONSE_CODE, &status);
  const bool good = status >= 200 && status < 300;
  if (good && answer.fills) {
    answer.too_long = count > answer.into.size() - answer.filled;
    if (answer.too_long) return 0;
    std::memcpy(answer.into.data() + answer.filled, bytes, count);
    answer.filled += count;
    return count;
  }
  const std::size_t most = good ? kLongestAnswer : kLongestError;
  if (answer.text.size() + count > most) return 0;
  answer.text.append(bytes, count);
  return count;
}

bool may_pass(const Answer& answer) {
  switch (answer.code) {
    case CURLE_OK:
      return answer.status == 429 || (answer.status >= 500 && answer.status != 501);
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
      return true;
    default:
      return false;
  }
}

std::string why(const Answer& answer) {
  if (answer.too_long) return "answers with more than it was asked for: it knows no ranges";
  if (answer.code != CURLE_OK) return answer.problem;
  const std::string said = parse_store_error(answer.text);
  return fmt::format("answers with status {}{}{}", answer.status, said.empty() ? "" : ", ", said);
}

[[noreturn]] void fail(const Answer& answer, const std::string& what) {
  if (may_pass(answer)) throw StoreError(what);
  throw DataError(what);
}

}  // namespace

std::string url_encoded(std::string_view text, std::string_view kept) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-_.~").find(c) != std::string_view::npos ||
                       kept.find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return out;
}

S3Access s3_access(const std::string& endpoint) {
  S3Access access{.endpoint = endpoint,
                  .region = variable("AWS_REGION"),
                  .key = variable("AWS_ACCESS_KEY_ID"),
                  .secret = variable("AWS_SECRET_ACCESS_KEY"),
                  .token = variable("AWS_SESSION_TOKEN")};
  if (access.key.empty() != access.secret.empty())
    throw DataError(
        fmt::format("{} is set and {} is not: a store needs both",
                    access.key.empty() ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID",
                    access.key.empty() ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY"));
  if (access.region.empty()) access.region = variable("AWS_DEFAULT_REGION");
  if (access.region.empty()) access.region = "us-east-1";
  for (const char* name : {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"})
    if (access.endpoint.empty()) access.endpoint = variable(name);
  if (access.endpoint.empty())
    access.endpoint = fmt::format("https://s3.{}.amazonaws.com", access.region);
  while (access.endpoint.ends_with('/')) access.endpoint.pop_back();
  return access;
}

/// Handles that wait for the next request, each with its connection.
struct S3Bucket::Connections {
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

  void ask_once(const S3Access& access, const std::string& url, const std::string& range,
                Answer& answer) {
    Handle handle = take();
    CURL* const curl = handle.get();
    curl_easy_reset(curl);  // connections stay
    std::unique_ptr<curl_slist, ListDelete> headers;
    const auto add_header = [&](const std::string& text) {
      curl_slist* const longer = curl_slist_append(headers.get(), text.c_str());
      if (longer == nullptr) throw DataError("no memory for a request");
      static_cast<void>(headers.release());
      headers.reset(longer);
    };
    char problem[CURL_ERROR_SIZE] = "";
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, problem);
    curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 10L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);  // bytes a second, for
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, 30L);  // so many seconds: it has stopped
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &take_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer);
    const std::string signer = fmt::format("aws:amz:{}:s3", access.region);
    const std::string who = access.key + ":" + access.secret;
    if (!access.key.empty()) {
      curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, signer.c_str());
      curl_easy_setopt(curl, CURLOPT_USERPWD, who.c_str());
      add_header(kEmptyBody);
      if (!access.token.empty()) add_header("x-amz-security-token: " + access.token);
      curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
    }
    if (!range.empty()) curl_easy_setopt(curl, CURLOPT_RANGE, range.c_str());
    answer.handle = curl;
    answer.code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.status);
    answer.problem = *problem != '\0' ? problem : curl_easy_strerror(answer.code);
    give_back(std::move(handle));
  }

  /// The first answer that is one; `whole` says of one that it has all that was asked for.
  Answer ask(const S3Access& access, const std::string& url, const std::string& range,
             const Answer& empty) {
    std::chrono::milliseconds pause = kFirstPause;
    for (int k = 1;; ++k, pause *= 2) {
      Answer answer = empty;
      ask_once(access, url, range, answer);
      const bool good = answer.code == CURLE_OK && answer.status >= 200 && answer.status < 300;
      if (good || k == kTries || !may_pass(answer)) return answer;
      std::this_thread::sleep_for(pause);
    }
  }
};

S3Bucket::S3Bucket(S3Access access, std::string bucket)
    : access_(std::move(access)),
      bucket_(std::move(bucket)),
      connections_(std::make_unique<Connections>()) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}
S3Bucket::~S3Bucket() = default;

std::vector<StoredObject> S3Bucket::list(std::string_view prefix) const {
  std::vector<StoredObject> all;
  std::string next;
  const std::string place = fmt::format("s3://{}/{}", bucket_, prefix);
  do {
    // In the order of the names, as the signature wants it.
    std::string query = next.empty() ? "" : "continuation-token=" + url_encoded(next, "") + "&";
    query += "list-type=2&prefix=" + url_encoded(prefix, "");
    const Answer answer = connections_->ask(
        access_, fmt::format("{}/{}?{}", access_.endpoint, url_encoded(bucket_, ""), query), "",
        {});
    if (answer.code != CURLE_OK || answer.status != 200)
      fail(answer, fmt::format("{}: {} {}", place, access_.endpoint, why(answer)));
    auto list = parse_object_list(answer.text);
    if (!list)
      throw DataError(fmt::format("{}: {} answers with something else than a list of objects: {}",
                                  place, access_.endpoint, list.error()));
    if (!list->next.empty() && list->next == next)
      throw DataError(fmt::format("{}: {} repeats itself", place, access_.endpoint));
    next = std::move(list->next);
    for (StoredObject& object : list->objects)
      if (object.name.starts_with(prefix)) all.push_back(std::move(object));
  } while (!next.empty());
  return all;
}

void S3Bucket::read(std::string_view key, std::int64_t offset,
                    std::span<std::uint8_t> bytes) const {
  if (bytes.empty()) return;
  const std::int64_t last = offset + static_cast<std::int64_t>(bytes.size()) - 1;
  const Answer answer = connections_->ask(
      access_,
      fmt::format("{}/{}/{}", access_.endpoint, url_encoded(bucket_, ""), url_encoded(key, "/")),
      fmt::format("{}-{}", offset, last), {.into = bytes, .fills = true});
  const auto refuse = [&](const std::string& what) {
    fail(answer, fmt::format("s3://{}/{}: at byte {}: {} {}", bucket_, key, offset,
                             access_.endpoint, what));
  };
  if (answer.code != CURLE_OK || answer.status < 200 || answer.status >= 300) refuse(why(answer));
  if (answer.status != 206 && offset > 0)
    refuse("answers with the whole object: it knows no ranges");
  if (answer.filled != bytes.size())
    refuse(fmt::format("answers with {} bytes, {} were asked for", answer.filled, bytes.size()));
}

}  // namespace reckon::data

#endif
