#include <fmt/format.h>

#include "executor/data/data_files.h"

// Which files are shards, and what is told of those that are not.
using namespace reckon;
using namespace reckon::test;

namespace {

/// The bytes of a shard with one sample of class 1.
std::string tar_of_one(const Folder& folder) {
  folder.write("a.jpg", stored("photo.jpg"));
  folder.write("a.cls", "1");
  pack(folder, "", "one.tar", "a.jpg a.cls");
  std::ifstream file(folder.path / "one.tar", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
ModelGraph of_three() { return classifier({3, 24, 24}, 3); }
DataSpec tars(const fs::path& path) { return spec_of(DataFormat::webdataset, path); }
DataSpec records(const fs::path& path) { return spec_of(DataFormat::tfrecord, path); }

}  // namespace

TEST_CASE("shards that are compressed are refused by name, beside others and alone") {
  const Folder folder("compressed");
  const std::string shard = tar_of_one(folder);
  folder.write("some/train-000000.tar", shard);
  folder.write("some/train-000001.tar.gz", "\x1f\x8b");
  folder.write("some/train-000002.tgz", "\x1f\x8b");
  check_says(complaint(tars(folder.path / "some"), of_three()),
             {"some: 2 shards are compressed: train-000001.tar.gz, train-000002.tgz\n",
              "gunzip train-000001.tar.gz"});
  folder.write("all/train-000001.tar.zst", "");
  check_says(complaint(tars(folder.path / "all"), of_three()),
             {"a shard is compressed: train-000001.tar.zst\n", "unzstd"});
  folder.write("records/train-00000-of-00002", record(example(stored("photo.jpg"), 1)));
  folder.write("records/train-00001-of-00002.gz", "\x1f\x8b");
  check_says(complaint(records(folder.path / "records"), of_three()),
             {"a shard is compressed: train-00001-of-00002.gz\n", "gunzip"});
}

TEST_CASE("indexes of shards, and what macOS leaves, are no shards") {
  const Folder folder("not-shards");
  const std::string shard = record(example(stored("photo.jpg"), 1));
  folder.write("a.tfrecord", shard);
  folder.write("a.tfrecord.idx", "0 100\n");
  folder.write("a.tfrecord.index", "0 100\n");
  folder.write("._a.tfrecord", "of macOS");
  for (const fs::path& path : {folder.path, folder.path / "a.tf"})
    CHECK(opened(records(path), of_three())->samples() == 1);
  const Folder of_tars("not-tars");
  of_tars.write("s/._a.jpg", "of macOS");
  of_tars.write("s/a.jpg", stored("photo.jpg"));
  of_tars.write("s/a.cls", "1");
  of_tars.write("t/._x.tar", "of macOS");
  pack(of_tars, "", "t/x.tar", "./s/._a.jpg ./s/a.jpg ./s/a.cls");
  CHECK(opened(tars(of_tars.path / "t"), of_three())->samples() == 1);
}

TEST_CASE("numbers that are missing between shards, and empty shards, are warned of") {
  const Folder folder("gaps");
  const std::string shard = tar_of_one(folder);
  for (const char* name : {"gap/train-000000.tar", "gap/train-000002.tar", "whole/train-000004.tar",
                           "whole/train-000005.tar", "dates/day-20240131.tar",
                           "dates/day-20240201.tar", "numbers/00.tar", "numbers/02.tar"})
    folder.write(name, shard);
  const auto warnings = [&](const char* below) {
    return opened(tars(folder.path / below), of_three())->warnings();
  };
  CHECK(warnings("gap") ==
        std::vector<std::string>{(folder.path / "gap").string() +
                                 ": 1 shard is missing between the first and the last: "
                                 "train-000001.tar"});
  CHECK(warnings("numbers").size() == 1);
  CHECK(warnings("whole").empty());
  CHECK(warnings("dates").empty());
  folder.write("records/a.tfrecord", record(example(stored("photo.jpg"), 1)));
  folder.write("records/b.tfrecord", "");
  CHECK(opened(records(folder.path / "records"), of_three())->warnings() ==
        std::vector<std::string>{(folder.path / "records/b.tfrecord").string() +
                                 ": holds no records, it is empty"});
}

TEST_CASE("paths of shards may have ranges of numbers in braces") {
  const Folder folder("braces");
  const std::string shard = tar_of_one(folder);
  for (const char* name : {"train-000000.tar", "train-000001.tar", "train-000002.tar",
                           "train-000010.tar", "train-x.tar", "train-/a.tar", "part-0/s-9.tar",
                           "part-0/s-10.tar", "part-1/s-9.tar", "part-1/s-10.tar"})
    folder.write(name, shard);
  const auto samples = [&](const char* path) {
    return opened(tars(folder.path / path), of_three())->samples();
  };
  CHECK(samples("train-{000000..000002}.tar") == 3);
  CHECK(samples("train-{000002..000001}.tar") == 2);
  CHECK(samples("part-{0..1}/s-{9..10}.tar") == 4);
  check_says(complaint(tars(folder.path / "train-{000000..000004}.tar"), of_three()),
             {"train-{000000..000004}.tar: not all of its 5 files are there, 2 are missing: "
              "train-000003.tar, train-000004.tar"});
  // Names that count their shards, of which these are all that is wanted.
  const std::string record_shard = record(example(stored("photo.jpg"), 1));
  for (const char* name : {"r-00000-of-00004", "r-00001-of-00004", "r-00003-of-00004"})
    folder.write(name, record_shard);
  CHECK(opened(records(folder.path / "r-{00000..00001}-of-00004"), of_three())->samples() == 2);
}

TEST_CASE("a tar archive that is cut off at a header is refused, one block of zeros is an end") {
  const Folder folder("tar-ends");
  const std::string shard = tar_of_one(folder);
  const std::size_t end = 512 + 1536 + 512 + 512;  // photo.jpg has 1,314 bytes, a.cls 1
  REQUIRE(shard.size() > end + 1024);
  const auto said = [&](const std::string& bytes) {
    folder.write("x.tar", bytes);
    return complaint(tars(folder.path / "x.tar"), of_three());
  };
  CHECK(said(shard.substr(0, end + 1024)).empty());
  CHECK(said(shard.substr(0, end + 512)).empty());
  check_says(said(shard.substr(0, end)),
             {"x.tar: at byte 3072: is cut off", "two blocks of zeros"});
  check_says(said(shard.substr(0, end + 100)), {"x.tar: at byte 3072: is cut off"});
  check_says(said(""), {"x.tar: at byte 0: is cut off"});
  check_says(said(shard.substr(0, end + 512) + shard),
             {"x.tar: at byte 3072: files stand behind a block of zeros"});
}

TEST_CASE("what is wrong with shards is told together, with its place") {
  const Folder folder("faults");
  const std::string shard = tar_of_one(folder);
  folder.write("b.cls", "7");
  folder.write("b.jpg", stored("photo.jpg"));
  folder.write("c.cls", "one");
  folder.write("c.jpg", stored("photo.jpg"));
  folder.write("s/t-0.tar", shard.substr(0, 3072));
  pack(folder, "", "s/t-1.tar", "a.jpg b.cls b.jpg c.cls c.jpg");
  check_says(complaint(tars(folder.path / "s"), of_three()),
             {"s: 4 faults:\n  ", "t-0.tar: at byte 3072: is cut off",
              "t-1.tar: at byte 512: sample a has no class", "sample b: class 7, the model has 3",
              "c.cls is no class"});
  const std::string record_shard = record(example(stored("photo.jpg"), 1));
  for (int k = 10; k < 40; ++k)
    folder.write("r/" + std::to_string(k) + ".tfrecord", record_shard.substr(0, 50));
  const std::string many = complaint(records(folder.path / "r"), of_three());
  check_says(many, {"r: the first 20 faults:\n  ", "10.tfrecord: at byte 50", "29.tfrecord"});
  CHECK(many.find("30.tfrecord") == std::string::npos);
}

TEST_CASE("an archive in which a sample's files stand apart says how to make one") {
  const Folder folder("sorted-by-endings");
  for (const char* key : {"000", "001"}) {
    folder.write(std::string(key) + ".jpg", stored("photo.jpg"));
    folder.write(std::string(key) + ".cls", "1");
  }
  fs::create_directories(folder.path / "t");
  pack(folder, "", "t/x.tar", "000.cls 001.cls 000.jpg 001.jpg");
  check_says(complaint(tars(folder.path / "t"), of_three()),
             {"x.tar: at byte 2560: the files of 2 samples do not follow each other, the first is "
              "000: its class is at byte 512\n",
              "tar --sort=name"});
}

TEST_CASE(
    "numbers in braces have the zeros that they are written with, and one 0 is none of them") {
  const Folder folder("zeros");
  const std::string shard = tar_of_one(folder);
  for (int k = 0; k <= 10; ++k) folder.write(fmt::format("plain/{}.tar", k), shard);
  for (int k = 0; k <= 10; ++k) folder.write(fmt::format("padded/{:03}.tar", k), shard);
  CHECK(opened(tars(folder.path / "plain/{0..10}.tar"), of_three())->samples() == 11);
  CHECK(opened(tars(folder.path / "padded/{000..010}.tar"), of_three())->samples() == 11);
  CHECK(opened(tars(folder.path / "padded/{000..10}.tar"), of_three())->samples() == 11);
}
