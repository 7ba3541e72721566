#ifdef RECKON_WITH_S3
#include <chrono>
#include <cstdlib>

#include "executor/data/data_files.h"
#include "executor/data/fake_store.h"
#include "executor/data/store/s3_client.h"

// Stores that answer otherwise than the documentation of Amazon has it, or not at all.
using namespace reckon;
using namespace reckon::test;

namespace {

using Answer = FakeStore::Answer;
using Request = FakeStore::Request;

constexpr const char* kUnavailable =
    "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>";

data::S3Bucket bucket_of(const FakeStore& store, DataWatch watch = {}) {
  return {{.endpoint = store.endpoint(), .region = "us-east-1"}, "bucket", std::move(watch)};
}

/// Of one that answers so to everything.
std::string refusal(const Answer& answer, const data::S3Access& access = {}) {
  const FakeStore store([&](const Request&) { return answer; });
  data::S3Access own = access;
  own.endpoint = store.endpoint();
  try {
    data::S3Bucket(own, "bucket", {.patience = Seconds{0.2}}).list("set/");
  } catch (const DataError& e) {
    CHECK(store.requests() == 1);  // it would answer so again
    return e.what();
  }
  return "";
}

double seconds_of(const std::function<void()>& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return Seconds(std::chrono::steady_clock::now() - begin).count();
}

std::vector<std::string> listed(const FakeStore& store) {
  std::vector<std::string> keys;
  for (const auto& object : bucket_of(store).list("set/")) keys.push_back(object.name);
  return keys;
}

}  // namespace

TEST_CASE("the list of a store that gives no tokens goes on behind its last key") {
  // Of ListObjects alone: NextMarker, or nothing where no delimiter was asked for.
  for (const std::string marker : {"<NextMarker>set/b</NextMarker>", ""}) {
    const FakeStore store([&](const Request& request) -> Answer {
      const std::string cut = "<IsTruncated>true</IsTruncated>" + marker;
      if (request.query.find("marker=") == std::string::npos)
        return {.body = list_of({{"set/a", 1}, {"set/b", 2}}, cut)};
      CHECK(request.query == "list-type=2&marker=set%2Fb&prefix=set%2F&start-after=set%2Fb");
      return {.body = list_of({{"set/c", 3}}, "<IsTruncated>false</IsTruncated>")};
    });
    CHECK(listed(store) == std::vector<std::string>{"set/a", "set/b", "set/c"});
  }
}

TEST_CASE("a list that goes on without an end is an error, not a part of the set") {
  const auto answering = [](const std::string& body) {
    const FakeStore store([&](const Request&) -> Answer { return {.body = body}; });
    try {
      listed(store);
      return std::string();
    } catch (const DataError& e) {
      return std::string(e.what());
    }
  };
  const std::string cut = "<IsTruncated>true</IsTruncated>";
  check_says(answering(list_of({{"set/a", 1}}, cut)),
             {"s3://bucket/set/: http://127.0.0.1:", "says that its list goes on"});
  check_says(answering(list_of({}, cut)), {"gives no more of it"});
  check_says(answering(list_of({{"set/a", 1}}, "<NextContinuationToken>t</NextContinuationToken>")),
             {"repeats itself"});
}

TEST_CASE("an object that was replaced while it is read is an error, by its ETag or its size") {
  const FakeStore store([](const Request& request) -> Answer {
    if (request.lists())
      return {.body =
                  "<ListBucketResult><Contents><Key>set/a</Key><Size>8</Size>"
                  "<ETag>&quot;one&quot;</ETag></Contents></ListBucketResult>"};
    if (request.header("if-match") == "\"one\"" && request.number == 2)
      return {.status = 206, .body = "abcd", .headers = {"Content-Range: bytes 0-3/8"}};
    if (request.number == 3) return {.status = 412, .body = ""};
    return {.status = 206, .body = "abcd", .headers = {"Content-Range: bytes 0-3/9"}};
  });
  const auto opened = data::open_store("s3://bucket/set/a", store.endpoint());
  std::array<std::uint8_t, 4> bytes{};
  const auto read = [&] { opened->read(opened->objects().front(), 0, bytes); };
  read();
  CHECK(std::string(bytes.begin(), bytes.end()) == "abcd");
  for (int k = 0; k < 2; ++k)
    CHECK_THROWS_WITH(read(),
                      "s3://bucket/set/a: is another object than when the store was opened: "
                      "start again to train on what is there now");
}

TEST_CASE("other bytes than were asked for are an error") {
  const FakeStore store([](const Request&) -> Answer {
    return {.status = 206, .body = "abcd", .headers = {"Content-Range: bytes 1-4/8"}};
  });
  std::array<std::uint8_t, 4> bytes{};
  CHECK_THROWS_WITH(bucket_of(store).read("a", {.name = "a", .size = 8}, 0, bytes),
                    Catch::Contains("answers with 'bytes 1-4/8', 0-3 were asked for"));
}

TEST_CASE("a file that was written anew while it is read is an error") {
  Folder folder("written_anew");
  folder.write("a", "abcd");
  const auto store = data::open_store((folder.path / "a").string(), "");
  fs::last_write_time(folder.path / "a",
                      fs::last_write_time(folder.path / "a") + std::chrono::seconds(1));
  std::array<std::uint8_t, 4> bytes{};
  CHECK_THROWS_WITH(store->read(store->objects().front(), 0, bytes),
                    Catch::Contains("was changed after the run began"));
}

TEST_CASE("a store that is away for a while is asked until it is back") {
  std::string warned;
  const FakeStore store([](const Request& request) -> Answer {
    if (request.number < 7) return {.status = 503, .body = kUnavailable};
    return {.body = list_of({{"set/a", 1}})};
  });
  const auto bucket = [&](Seconds patience) {
    return data::S3Bucket(
        {.endpoint = store.endpoint()}, "bucket",
        {.warn = [&](const std::string& text) { warned += text; }, .patience = patience});
  };
  CHECK(bucket(Seconds{60}).list("set/").size() == 1);  // tries take 0.05 + ... + 1.6 s at least
  CHECK(store.requests() == 7);
  check_says(warned, {"s3://bucket/set/: http://127.0.0.1:", "status 503, SlowDown",
                      "it is asked again for 1 min"});
}

TEST_CASE("a store that stays away is said with how long it was asked") {
  const FakeStore store(
      [](const Request&) -> Answer { return {.status = 503, .body = kUnavailable}; });
  const auto list = [&] { bucket_of(store, {.patience = Seconds{0.5}}).list("set/"); };
  CHECK_THROWS_AS(list(), data::StoreError);
  CHECK_THROWS_WITH(list(),
                    Catch::Contains("status 503, SlowDown: Please reduce your request rate"));
  CHECK_THROWS_WITH(list(), Catch::Matches(".*\\(asked [2-9] times in [0-9.]+ (s|ms)\\)"));
}

TEST_CASE("a store that wants to be left alone for a time is") {
  const FakeStore store([](const Request& request) -> Answer {
    if (request.number == 1)
      return {.status = 503, .body = kUnavailable, .headers = {"Retry-After: 1"}};
    if (request.number == 2)
      return {.status = 400, .body = "<Error><Code>RequestTimeout</Code></Error>"};
    return {.body = list_of({{"set/a", 1}})};
  });
  CHECK(seconds_of([&] { CHECK(bucket_of(store).list("set/").size() == 1); }) > 1);
  const FakeStore away([](const Request&) -> Answer {
    return {.status = 503, .body = kUnavailable, .headers = {"Retry-After: 600"}};
  });
  CHECK_THROWS_WITH(bucket_of(away).list("set/"),
                    Catch::Contains("wants to be asked again in 10 min"));
  CHECK(away.requests() == 1);  // longer than it may take
}

TEST_CASE("a stop ends a request that a store does not answer, and the wait for the next") {
  for (const bool never : {true, false}) {
    std::atomic<bool> stop{false};
    const FakeStore store([&](const Request& request) -> Answer {
      if (never || request.number > 3) stop = true;
      return {.status = 503, .body = kUnavailable, .headers = {}, .never = never};
    });
    const double took = seconds_of([&] {
      CHECK_THROWS_AS(bucket_of(store, {.stop = [&] { return stop.load(); }}).list("set/"),
                      ReadingStopped);
    });
    CHECK(took < 10);  // a request is given up after 30 s
  }
}

TEST_CASE("whoever opens a set in a store hears that it gets on") {
  const FakeStore store([](const Request& request) -> Answer {
    if (!request.lists()) return {.status = 206, .body = "x"};
    if (request.query.find("continuation-token") == std::string::npos)
      return {.body = list_of({{"set/a", 1}}, "<NextContinuationToken>t</NextContinuationToken>")};
    return {.body = list_of({{"set/b", 1}})};
  });
  int told = 0;
  const auto opened = data::open_store("s3://bucket/set", store.endpoint(),
                                       {.got_on = [&] { ++told; }, .stop = {}, .warn = {}});
  CHECK(told == 2);  // a page each
  std::array<std::uint8_t, 1> byte{};
  opened->read(opened->objects().front(), 0, byte);
  CHECK(told == 3);
}

TEST_CASE("what a store refuses is said with what to do") {
  const auto error = [](const std::string& code, const std::string& more = "") {
    return "<Error><Code>" + code + "</Code><Message>It says.</Message>" + more + "</Error>";
  };
  const data::S3Access ours{.region = "us-east-1", .names_endpoint = false};
  check_says(refusal({.status = 301,
                      .body = error("PermanentRedirect"),
                      .headers = {"x-amz-bucket-region: eu-west-1"}},
                     ours),
             {"status 301, PermanentRedirect: It says: the bucket is in region eu-west-1: set "
              "AWS_REGION=eu-west-1"});
  check_says(refusal({.status = 400,
                      .body = error("AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>")}),
             {"set AWS_REGION=eu-west-1, and workload.data.endpoint or AWS_ENDPOINT_URL"});
  check_says(refusal({.status = 307, .body = "", .headers = {"Location: http://there/set"}}),
             {"status 307: set workload.data.endpoint or AWS_ENDPOINT_URL", ": http://there/set"});
  check_says(refusal({.status = 403, .body = error("AccessDenied")}),
             {"AccessDenied",
              "the request is not signed: set AWS_ACCESS_KEY_ID and "
              "AWS_SECRET_ACCESS_KEY",
              "AWS_SESSION_TOKEN"});
  const data::S3Access signs{.region = "us-east-1", .key = "key", .secret = "secret"};
  check_says(refusal({.status = 403, .body = error("InvalidAccessKeyId")}, signs),
             {"it is signed by AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (AWS_SESSION_TOKEN is "
              "not set) for region us-east-1"});
  check_says(refusal({.status = 403, .body = error("RequestTimeTooSkewed")}, signs),
             {"set the clock of this machine"});
  check_says(refusal({.status = 404, .body = error("NoSuchBucket")}),
             {"404, NoSuchBucket: It says"});
}

TEST_CASE("locations that are not read say which are") {
  const ModelGraph model = language_model(50, 4);
  for (const DataFormat format : {DataFormat::numpy, DataFormat::text})
    for (const std::string path : {"gs://photos/x.npy", "S3://photos/x.npy", "https://host/x.npy"})
      check_says(complaint({.format = format, .path = path}, model),
                 {path + ": " + path.substr(0, path.find(':')) +
                  ":// is not read: a path, or "
                  "s3://BUCKET/KEY"});
  for (const std::string path : {"s3://", "s3:///x.npy"})
    check_says(complaint({.format = DataFormat::numpy, .path = path}, model),
               {path + ": names no bucket: s3://BUCKET/KEY is expected"});
}

#endif
