#ifdef RECKON_WITH_S3
#include "executor/data/store/s3_client.h"

#include <fmt/format.h>

#include <cstdlib>
#include <set>

#include "executor/data/store/s3_requests.h"

namespace reckon::data {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// "bytes 0-99/1234": are those other bytes than from `first` to `last` of `size`?
bool is_other_range(const std::string& said, std::int64_t first, std::int64_t last,
                    std::int64_t size) {
  const std::string wanted = fmt::format("bytes {}-{}/", first, last);
  return said != wanted + std::to_string(size) && said != wanted + "*";
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
  access.names_endpoint = !access.endpoint.empty();
  if (!access.names_endpoint)
    access.endpoint = fmt::format("https://s3.{}.amazonaws.com", access.region);
  while (access.endpoint.ends_with('/')) access.endpoint.pop_back();
  return access;
}

S3Bucket::S3Bucket(S3Access access, std::string bucket, DataWatch watch)
    : bucket_(std::move(bucket)),
      requests_(std::make_unique<S3Requests>(std::move(access), std::move(watch))) {}
S3Bucket::~S3Bucket() = default;

ObjectList S3Bucket::list_page(std::string_view prefix, const ListPlace& from) const {
  const std::string place = fmt::format("s3://{}/{}", bucket_, prefix);
  // In the order of the names, as the signature wants it.
  std::string query;
  if (!from.token.empty()) query += "continuation-token=" + url_encoded(from.token, "") + "&";
  query += "list-type=2";
  if (!from.behind.empty()) query += "&marker=" + url_encoded(from.behind, "");
  query += "&prefix=" + url_encoded(prefix, "");
  if (!from.behind.empty()) query += "&start-after=" + url_encoded(from.behind, "");
  const std::string& endpoint = requests_->access().endpoint;
  const S3Answer answer = requests_->ask(
      {.url = fmt::format("{}/{}?{}", endpoint, url_encoded(bucket_, ""), query)}, place);
  if (!answer.good()) requests_->refuse(answer, place);
  auto list = parse_object_list(answer.text);
  if (!list)
    throw DataError(fmt::format("{}: {} answers with something else than a list of objects: {}",
                                place, endpoint, list.error()));
  return std::move(*list);
}

std::vector<StoredObject> S3Bucket::list(std::string_view prefix) const {
  std::vector<StoredObject> all;
  std::set<std::string> asked;  // tokens
  ListPlace from;
  const auto refuse = [&](std::string_view what) {
    throw DataError(
        fmt::format("s3://{}/{}: {} {}", bucket_, prefix, requests_->access().endpoint, what));
  };
  for (bool more = true; more;) {
    ObjectList list = list_page(prefix, from);
    requests_->watch().tell();
    if (!list.next.empty()) {
      if (!asked.insert(list.next).second) refuse("repeats itself");
      from = {.token = list.next, .behind = ""};
    } else if (list.truncated) {
      std::string last = list.marker;
      if (last.empty() && !list.objects.empty()) last = list.objects.back().name;
      if (last.empty() || last <= from.behind)
        refuse("says that its list goes on, and gives no more of it");
      from = {.token = "", .behind = std::move(last)};
    } else {
      more = false;
    }
    for (StoredObject& object : list.objects)
      if (object.name.starts_with(prefix)) all.push_back(std::move(object));
  }
  return all;
}

void S3Bucket::read(std::string_view key, const StoredObject& object, std::int64_t offset,
                    std::span<std::uint8_t> bytes) const {
  if (bytes.empty()) return;
  const std::int64_t last = offset + static_cast<std::int64_t>(bytes.size()) - 1;
  const std::string object_place = fmt::format("s3://{}/{}", bucket_, key);
  const std::string place = fmt::format("{}: at byte {}", object_place, offset);
  const S3Answer answer =
      requests_->ask({.url = fmt::format("{}/{}/{}", requests_->access().endpoint,
                                         url_encoded(bucket_, ""), url_encoded(key, "/")),
                      .range = fmt::format("{}-{}", offset, last),
                      .if_match = object.version,
                      .into = bytes,
                      .fills = true},
                     place);
  const bool other_range = answer.status == 206 && !answer.content_range.empty() &&
                           is_other_range(answer.content_range, offset, last, object.size);
  const bool other_size =
      other_range && !answer.content_range.ends_with(fmt::format("/{}", object.size));
  constexpr long kPreconditionFailed = 412, kBehindTheEnd = 416;
  if (answer.status == kPreconditionFailed || answer.status == kBehindTheEnd || other_size)
    throw DataError(
        fmt::format("{}: is another object than when the store was opened: start again to train on "
                    "what is there now",
                    object_place));
  if (!answer.good()) requests_->refuse(answer, place);
  if (answer.status != 206 && offset > 0)
    requests_->refuse(answer, place, "answers with the whole object: it knows no ranges");
  if (answer.filled != bytes.size())
    requests_->refuse(
        answer, place,
        fmt::format("answers with {} bytes, {} were asked for", answer.filled, bytes.size()));
  if (other_range)
    requests_->refuse(
        answer, place,
        fmt::format("answers with '{}', {}-{} were asked for", answer.content_range, offset, last));
  requests_->watch().tell();
}

}  // namespace reckon::data

#endif
