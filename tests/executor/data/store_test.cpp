#include <cstdlib>
#include <thread>

#ifdef RECKON_WITH_S3
#include "executor/data/store/s3_answers.h"
#include "executor/data/store/s3_client.h"
#endif
#include "executor/data/data_files.h"

using namespace reckon;
using namespace reckon::test;
using data::choose_objects;
using data::StoredObject;

namespace {

std::vector<std::string> names(const data::Chosen& chosen) {
  std::vector<std::string> all;
  for (const StoredObject& object : chosen.objects) all.push_back(object.name);
  return all;
}
using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a location is one object, all below a folder, or all whose names begin so") {
  const std::vector<StoredObject> all{{"set/b/1", 1}, {"set/a/2", 2}, {"set", 3},
                                      {"set-2", 4},   {"set/", 0},    {"set-2x/y", 5}};
  CHECK(names(choose_objects("set", all)) == Names{"set"});
  CHECK(names(choose_objects("set/", all)) == Names{"a/2", "b/1"});
  CHECK(choose_objects("set/", all).root == "set/");
  CHECK(choose_objects("set/", all).is_folder);
  CHECK(names(choose_objects("set/a", all)) == Names{"2"});
  CHECK(names(choose_objects("set-", all)) == Names{"set-2"});
  CHECK_FALSE(choose_objects("set-", all).is_folder);
  CHECK(choose_objects("", all).objects.size() == 5);  // "set/" only stands for a folder
  CHECK(choose_objects("other", {}).objects.empty());
}

TEST_CASE("formats that are not read from stores, and images of another kind, say so") {
  const ModelGraph model = classifier({3, 32, 32}, 10);
  check_says(complaint({.format = DataFormat::cifar10, .path = "s3://bucket/cifar"}, model),
             {"s3://bucket/cifar", "cifar10 is read from files of the machine"});
  CHECK_THROWS_WITH(open_data({.format = DataFormat::numpy, .path = "x"}, {}, model, 1, 0),
                    Catch::Matchers::Contains("read by reckon-worker alone"));
}

#ifdef RECKON_WITH_S3

TEST_CASE("names are encoded as a signature wants them") {
  CHECK(data::url_encoded("a b/ü~-_.+*", "/") == "a%20b/%C3%BC~-_.%2B%2A");
  CHECK(data::url_encoded("a/b", "") == "a%2Fb");
}

TEST_CASE("answers of a store are read, and what is none is refused") {
  const auto list = data::parse_object_list(
      R"(<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">)"
      "<Name>b</Name><Contents><Key>a &amp; "
      "b.jpg</Key><Size>12</Size><ETag>&quot;x&quot;</ETag></Contents>"
      "<Contents><Key>c</Key><Size>0</Size></Contents><IsTruncated>true</IsTruncated>"
      "<NextContinuationToken>to ken</NextContinuationToken></ListBucketResult>");
  REQUIRE(list);
  CHECK(list->objects == std::vector<StoredObject>{{"a & b.jpg", 12, "\"x\""}, {"c", 0}});
  CHECK(list->next == "to ken");
  CHECK(list->truncated);
  const auto wrong = [](const std::string& xml) { return data::parse_object_list(xml).error(); };
  check_says(wrong("<ListBucketResult>"), {"line 1: "});
  check_says(wrong("<html/>"), {"is no list of objects"});
  check_says(wrong("<ListBucketResult><Contents><Key>a</Key><Size>-1</Size></Contents>"
                   "</ListBucketResult>"),
             {"the size of a is '-1'"});
  check_says(wrong("<ListBucketResult><Contents/></ListBucketResult>"), {"an object has no key"});
  std::string deep;
  for (int k = 0; k < 100; ++k) deep += "<a>";
  CHECK_FALSE(wrong(deep).empty());
  CHECK(data::parse_store_error("<Error><Code>NoSuchKey</Code><Message>none</Message></Error>")
            .text() == "NoSuchKey: none");
  CHECK(data::parse_store_error("<html/>").text().empty());
}

TEST_CASE("a store that is not there, and half of the credentials, say so") {
  const ModelGraph model = language_model(50, 4);
  ::setenv("AWS_ACCESS_KEY_ID", "key", 1);
  ::unsetenv("AWS_SECRET_ACCESS_KEY");
  const DataSpec spec{
      .format = DataFormat::numpy, .path = "s3://bucket/x.npy", .endpoint = "http://127.0.0.1:1"};
  check_says(complaint(spec, model), {"AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not"});
  ::unsetenv("AWS_ACCESS_KEY_ID");
  const auto open = [&] { open_samples(spec, {}, model, 1, 0, 0, {}, {.patience = Seconds{0.2}}); };
  CHECK_THROWS_AS(open(), data::StoreError);  // another start may find it
  CHECK_THROWS_WITH(open(), Catch::Contains("s3://bucket/x.npy: http://127.0.0.1:1 "));
}

// These are run by stores.py beside this file, which starts a store and puts files into it.
TEST_CASE("a file of TFRecords is written", "[.records]") {
  const fs::path folder = std::getenv("RECKON_TEST_FILES");
  std::ofstream(folder / ".records", std::ios::binary)
      << record(example(stored("photo.jpg"), 1)) << record(example(stored("photo.png"), 2));
}

TEST_CASE("what is in a store is what is in files", "[.store]") {
  const std::string endpoint = std::getenv("RECKON_TEST_STORE");
  const fs::path folder = std::getenv("RECKON_TEST_FILES");
  const ModelGraph images = classifier({3, 24, 24}, 3), tokens = language_model(50, 4);
  struct Case {
    DataFormat format;
    std::string path;
    const ModelGraph* model;
  };
  for (const Case& c : {Case{DataFormat::image_folder, "images", &images},
                        Case{DataFormat::webdataset, "shards", &images},
                        Case{DataFormat::tfrecord, "records/train-", &images},
                        Case{DataFormat::numpy, "tokens/tokens-u2.npy", &tokens},
                        Case{DataFormat::megatron, "tokens/corpus", &tokens},
                        Case{DataFormat::tokens, "tokens/raw.bin", &tokens}}) {
    INFO(c.path);
    const auto local = opened({.format = c.format, .path = (folder / c.path).string()}, *c.model);
    const auto stored =
        opened({.format = c.format, .path = "s3://data/set one/" + c.path, .endpoint = endpoint},
               *c.model);
    REQUIRE(stored->samples() == local->samples());
    std::vector<std::jthread> threads;
    std::vector<Sample> got(static_cast<std::size_t>(local->samples()));
    for (std::size_t k = 0; k < got.size(); ++k)
      threads.emplace_back([&, k] { got[k] = read(*stored, *c.model, std::int64_t(k)); });
    threads.clear();
    for (std::size_t k = 0; k < got.size(); ++k)
      CHECK(got[k] == read(*local, *c.model, std::int64_t(k)));
    const InputWork work = stored->work().value_or(InputWork{});
    CHECK(work.samples == local->samples());
    CHECK(work.reading.count() > 0);
    if (const auto files = local->work()) CHECK(work.read.v == files->read.v);
  }
}

TEST_CASE("a store lists more objects than one answer holds", "[.store]") {
  const auto store = data::open_store("s3://data/many/", std::getenv("RECKON_TEST_STORE"));
  CHECK(store->objects().size() == 1203);
  CHECK(store->objects().front().name == "0000 & 'a'.bin");
  std::array<std::uint8_t, 3> bytes{};
  store->read(store->objects().front(), 2, bytes);
  CHECK(std::string(bytes.begin(), bytes.end()) == "ree");
}

TEST_CASE("what a store refuses is said in its words", "[.store]") {
  const std::string endpoint = std::getenv("RECKON_TEST_STORE");
  const auto says = [&](const std::string& path) {
    return complaint({.format = DataFormat::numpy, .path = path, .endpoint = endpoint},
                     language_model(50, 4));
  };
  check_says(says("s3://nowhere/x"), {"s3://nowhere/x", "404", "NoSuchBucket"});
  check_says(says("s3://data/none"), {"s3://data/none: there are no objects"});
  const data::S3Bucket bucket(data::s3_access(endpoint), "data");
  std::array<std::uint8_t, 8> bytes{};
  CHECK_THROWS_WITH(bucket.read("none", {}, 0, bytes), Catch::Matchers::Contains("NoSuchKey"));
  CHECK_THROWS_WITH(bucket.read("many/0000 & 'a'.bin", {.size = 5}, 2, bytes),
                    Catch::Matchers::Contains("answers with 3 bytes, 8 were asked for"));
  ::setenv("AWS_SECRET_ACCESS_KEY", "wrong", 1);
  check_says(says("s3://data/none"), {"403", "SignatureDoesNotMatch", "AWS_SECRET_ACCESS_KEY"});
}

#endif
