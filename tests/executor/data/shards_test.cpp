#include "executor/data/data_files.h"
#include "executor/data/shards/example.h"
#include "executor/data/shards/tar.h"

using namespace reckon;
using namespace reckon::test;

namespace {

std::vector<data::TarMember> members(const fs::path& archive) {
  const auto store = data::open_store(archive.string(), "");
  return data::tar_members(*store, store->objects().at(0),
                           [](const std::string&) { return std::int64_t{4}; });
}
std::string content(const fs::path& archive, const data::TarMember& member) {
  std::ifstream file(archive, std::ios::binary);
  file.seekg(member.offset);
  std::string text(static_cast<std::size_t>(member.size), '\0');
  file.read(text.data(), member.size);
  return text;
}
std::string stored_at(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void change(const fs::path& path, std::int64_t at, char to) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(at);
  file.put(to);
}

}  // namespace

TEST_CASE("tar archives of every kind that GNU tar writes give their files and where they are") {
  const Folder folder("tar");
  const std::string deep(60, 'd'), long_name = deep + "/" + deep + "/" + std::string(70, 'n');
  folder.write("a.txt", "first");
  folder.write("b.bin", std::string(1000, 'b'));
  folder.write("empty", "");
  folder.write(long_name, "long");
  fs::create_symlink("a.txt", folder.path / "link");
  for (const char* kind : {"gnu", "ustar", "pax", "v7"}) {
    INFO(kind);
    const bool knows_long_names = std::string(kind) != "v7" && std::string(kind) != "ustar";
    const std::string archive = std::string(kind) + ".tar";
    pack(folder, std::string("--format=") + kind, archive,
         "a.txt link b.bin empty " + (knows_long_names ? long_name : ""));
    const auto found = members(folder.path / archive);
    REQUIRE(found.size() >= 3);
    CHECK(found[0].name == "a.txt");
    CHECK(content(folder.path / archive, found[0]) == "first");
    CHECK(found[0].begin == "firs");
    CHECK(found[1].name == "b.bin");
    CHECK(content(folder.path / archive, found[1]) == std::string(1000, 'b'));
    CHECK(found[2] == data::TarMember{"empty", found[2].offset, 0, ""});
    if (!knows_long_names) continue;
    REQUIRE(found.size() == 4);
    CHECK(found[3].name == long_name);
    CHECK(content(folder.path / archive, found[3]) == "long");
  }
  // A prefix of POSIX: 60 + 1 + 60 letters before the last '/'.
  const std::string two_parts = deep + "/" + deep + "/n";
  folder.write(two_parts, "prefix");
  pack(folder, "--format=ustar", "prefix.tar", two_parts);
  const auto found = members(folder.path / "prefix.tar");
  REQUIRE(found.size() == 1);
  CHECK(found[0].name == two_parts);
  CHECK(content(folder.path / "prefix.tar", found[0]) == "prefix");
}

TEST_CASE("webdataset shards: the files of a sample share their names up to the first dot") {
  const Folder folder("webdataset");
  folder.write("s/000.jpg", stored("photo.jpg"));
  folder.write("s/000.cls", "2\n");
  folder.write("s/000.json", "{}");
  folder.write("s/001.cls", "0");
  folder.write("s/001.png", stored("photo.png"));
  folder.write("t/002.jpeg", stored("progressive.jpg"));
  folder.write("t/002.cls", " 1");
  pack(folder, "", "data-000.tar", "s/000.jpg s/000.cls s/000.json s/001.cls s/001.png");
  pack(folder, "", "data-001.tar", "t/002.cls t/002.jpeg");
  const ModelGraph model = classifier({3, 24, 24}, 3);
  for (const fs::path& path : {folder.path, folder.path / "data-"}) {
    INFO(path);
    const auto source = opened(spec_of(DataFormat::webdataset, path), model);
    REQUIRE(source->samples() == 3);
    std::vector<float> classes;
    for (std::int64_t k = 0; k < 3; ++k) classes.push_back(read(*source, model, k).target[0]);
    CHECK(classes == std::vector<float>{2, 0, 1});
  }
  CHECK(opened(spec_of(DataFormat::webdataset, folder.path / "data-001.tar"), model)->samples() ==
        1);
  // What is read is the image alone.
  const auto source = opened(spec_of(DataFormat::webdataset, folder.path / "data-001.tar"), model);
  read(*source, model, 0);
  CHECK(source->work()->read.v == double(stored("progressive.jpg").size()));
}

TEST_CASE("endings of a sample's files in a webdataset shard have any case") {
  const Folder folder("webdataset-case");
  folder.write("a.PNG", stored("photo.png"));
  folder.write("a.CLS", "2");
  folder.write("b.Jpg", stored("photo.jpg"));
  folder.write("b.cls", "1");
  pack(folder, "", "x.tar", "a.PNG a.CLS b.Jpg b.cls");
  const ModelGraph model = classifier({3, 24, 24}, 3);
  const auto source = opened(spec_of(DataFormat::webdataset, folder.path), model);
  REQUIRE(source->samples() == 2);
  CHECK(read(*source, model, 0).target[0] == 2);
  CHECK(read(*source, model, 1).target[0] == 1);
}

TEST_CASE("webdataset shards of two sets are refused, those of one set in folders are not") {
  const Folder folder("webdataset-sets");
  const ModelGraph model = classifier({3, 24, 24}, 3);
  folder.write("a.jpg", stored("photo.jpg"));
  folder.write("a.cls", "1");
  pack(folder, "", "one.tar", "a.jpg a.cls");
  const auto said = [&](const std::string& below, std::initializer_list<const char*> shards) {
    const std::string shard = stored_at(folder.path / "one.tar");
    for (const char* name : shards) folder.write(below + "/" + name, shard);
    return complaint(spec_of(DataFormat::webdataset, folder.path / below), model);
  };
  const std::string at = folder.path.string();
  check_says(
      said("two", {"train-000000.tar", "train-000001.tar", "validation-000000.tar"}),
      {"two: holds shards of train and of validation: name one set, path: " + at + "/two/train-"});
  CHECK(opened(spec_of(DataFormat::webdataset, folder.path / "two/train-"), model)->samples() == 2);
  check_says(said("folders", {"train/000000.tar", "val/000000.tar"}),
             {"holds shards of train and of val", "path: " + at + "/folders/train/"});
  CHECK(said("numbers", {"000000.tar", "000001.tar"}).empty());
  CHECK(said("names", {"a.tar", "b.tar"}).empty());
  CHECK(said("shared-out", {"part-0/shard-0.tar", "part-1/shard-1.tar"}).empty());
  check_says(said("lacks", {"train-00001-of-00003.tar"}),
             {"2 of the 3 shards of train are missing: train-00000-of-00003.tar, "
              "train-00002-of-00003.tar\n"});
}

TEST_CASE("damaged webdataset shards are named with the byte") {
  const Folder folder("webdataset-bad");
  const ModelGraph model = classifier({3, 24, 24}, 3);
  const DataSpec spec = spec_of(DataFormat::webdataset, folder.path);
  folder.write("a.jpg", stored("photo.jpg"));
  folder.write("a.cls", "1");
  folder.write("a.png", stored("photo.png"));
  folder.write("b.jpg", stored("photo.jpg"));
  folder.write("b.cls", "one");
  folder.write("c.cls", "7");
  folder.write("c.jpg", stored("photo.jpg"));
  folder.write("notes.txt", "");
  check_says(complaint(spec, model), {"holds no samples: .tar files are expected"});
  const auto packed = [&](const std::string& files) {
    pack(folder, "", "x.tar", files);
    return complaint(spec, model);
  };
  CHECK(packed("a.jpg a.cls").empty());
  check_says(packed("a.jpg b.jpg"), {"x.tar: at byte 512: sample a has no class (.cls)"});
  check_says(packed("a.cls"), {"x.tar: at byte 512: sample a has no image"});
  check_says(packed("a.cls a.jpg a.png"), {"x.tar: at byte ", "sample a has an image twice"});
  check_says(packed("b.jpg b.cls"), {"b.cls is no class: a whole number is expected"});
  check_says(packed("c.jpg c.cls"),
             {"x.tar: at byte 2560: sample c: class 7, the model has 3: 0 to 2"});
  CHECK(packed("a.jpg a.cls").empty());
  const fs::path archive = folder.path / "x.tar";
  const std::int64_t second = 512 + 1536;  // the header behind photo.jpg's 1,314 bytes
  change(archive, second, 'z');
  check_says(complaint(spec, model),
             {"x.tar: at byte 2048: a header of tar is damaged: its checksum differs"});
  fs::resize_file(archive, 1000);
  check_says(complaint(spec, model), {"x.tar: at byte 1000: ends, ", "of a.jpg are missing"});
  fs::resize_file(archive, 100);
  check_says(complaint(spec, model), {"x.tar: at byte 0: is cut off within a header of tar"});
  folder.write("x.tar", std::string("\x1f\x8b\x08", 3) + std::string(600, 'z'));
  check_says(complaint(spec, model), {"x.tar: at byte 0: is no tar archive (is it compressed?)"});
}

TEST_CASE("checksums are those of CRC32C") {
  // The check value of the polynomial, and RFC 3720, B.4: 32 bytes of zeros; masked as TFRecord's.
  const auto masked = [](std::uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8; };
  CHECK(data::masked_crc32c(bytes_of("123456789")) == masked(0xE3069283));
  CHECK(data::masked_crc32c(bytes_of(std::string(32, '\0'))) == masked(0x8A9136AA));
}

TEST_CASE("a tf.train.Example that protoc wrote is read") {
  const std::string message = stored("example.pb");
  const auto found = data::parse_image_example(bytes_of(message));
  REQUIRE(found);
  CHECK(std::string(found->encoded.begin(), found->encoded.end()) == "the bytes");
  CHECK(found->label == 300);
  // Cut off anywhere it is damaged or lacks what comes last.
  for (std::size_t size = 0; size < message.size(); ++size)
    CHECK_FALSE(data::parse_image_example(bytes_of(message.substr(0, size))));
  // int64 lists may be unpacked; two labels are none.
  const std::string image = feature("image/encoded", 1, field(1, "x"));
  const auto label = [&](const std::string& list) {
    return data::parse_image_example(
        bytes_of(field(1, image + feature("image/class/label", 3, list))));
  };
  const std::string unpacked("\x08\x05", 2), twice = unpacked + unpacked;
  CHECK(data::parse_image_example(
            bytes_of(field(1, image + feature("image/class/label", 3, unpacked))))
            ->label == 5);
  CHECK_THAT(label(twice).error(), Catch::Matchers::Contains("has 2 values, one is expected"));
  CHECK_THAT(label("").error(), Catch::Matchers::Contains("has 0 values"));
  const std::string none = field(1, image);
  CHECK_THAT(data::parse_image_example(bytes_of(none)).error(),
             Catch::Matchers::Contains("has no feature image/class/label, nor label"));
  // As TensorFlow Datasets names them.
  const std::string named_otherwise =
      field(1, feature("image", 1, field(1, "x")) + feature("label", 3, unpacked) +
                   feature("file_name", 1, field(1, "1.jpg")));
  const auto other = data::parse_image_example(bytes_of(named_otherwise));
  REQUIRE(other);
  CHECK(std::string(other->encoded.begin(), other->encoded.end()) == "x");
  CHECK(other->label == 5);
}

TEST_CASE("TFRecord shards: a folder, a file, or how their names begin") {
  const Folder folder("tfrecord");
  folder.write("train-00000-of-00002",
               record(example(stored("photo.jpg"), 1)) + record(example(stored("photo.png"), 0)));
  folder.write("train-00001-of-00002", record(example(stored("grey.jpg"), 2)));
  folder.write("LICENSE", "text");
  const ModelGraph model = classifier({3, 24, 24}, 3);
  const auto source = opened(spec_of(DataFormat::tfrecord, folder.path), model);
  REQUIRE(source->samples() == 3);
  std::vector<float> classes;
  for (std::int64_t k = 0; k < 3; ++k) classes.push_back(read(*source, model, k).target[0]);
  CHECK(classes == std::vector<float>{1, 0, 2});
  folder.write("validation-00000-of-00001", record(example(stored("photo.jpg"), 1)));
  check_says(complaint(spec_of(DataFormat::tfrecord, folder.path), model),
             {"holds shards of train and of validation: name one set", "train-"});
  CHECK(opened(spec_of(DataFormat::tfrecord, folder.path / "train-"), model)->samples() == 3);
  CHECK(opened(spec_of(DataFormat::tfrecord, folder.path / "validation-00000-of-00001"), model)
            ->samples() == 1);
  const Folder other("tfrecord-none");
  other.write("data.bin", "");
  check_says(complaint(spec_of(DataFormat::tfrecord, other.path), model), {"holds no records"});
}

TEST_CASE("a TFRecord set that lacks shards is refused unless the path names shards") {
  const Folder folder("tfrecord-lacks");
  const ModelGraph model = classifier({3, 24, 24}, 3);
  const std::string shard = record(example(stored("photo.jpg"), 1));
  const DataSpec all = spec_of(DataFormat::tfrecord, folder.path);
  folder.write("train-00001-of-00008", shard);
  check_says(complaint(all, model),
             {"7 of the 8 shards of train are missing: train-00000-of-00008, "
              "train-00002-of-00008, train-00003-of-00008, ...\n",
              "path: " + folder.path.string() + "/train-0"});
  check_says(complaint(spec_of(DataFormat::tfrecord, folder.path / "train-"), model),
             {"7 of the 8 shards", "path: " + folder.path.string() + "/train-0"});
  for (const char* named : {"train-00001-of-00008", "train-0", "train-00001"})
    CHECK(opened(spec_of(DataFormat::tfrecord, folder.path / named), model)->samples() == 1);
  for (const char* k : {"0", "2", "3", "4", "5", "6"})
    folder.write(std::string("train-0000") + k + "-of-00008", shard);
  check_says(complaint(all, model),
             {"1 of the 8 shards of train is missing: train-00007-of-00008\n"});
  folder.write("train-00007-of-00008", shard);
  CHECK(opened(all, model)->samples() == 8);
  folder.write("train-00000-of-00001", shard);
  check_says(complaint(all, model), {"the shards of train are 1 and 8 by their names"});
  const Folder other("tfrecord-endings");
  other.write("mnist.tfrecord-00000-of-00002", shard);
  check_says(complaint(spec_of(DataFormat::tfrecord, other.path), model),
             {"of mnist.tfrecord is missing: mnist.tfrecord-00001-of-00002\n"});
}

TEST_CASE("damaged TFRecord shards are named with the byte, records may be left out") {
  const Folder folder("tfrecord-bad");
  const ModelGraph model = classifier({3, 24, 24}, 3);
  const std::string first = record(example(stored("photo.jpg"), 1)),
                    second = record(example(stored("photo.png"), 2));
  DataSpec spec = spec_of(DataFormat::tfrecord, folder.path);
  const auto said = [&](const std::string& bytes) {
    folder.write("a.tfrecord", bytes);
    return complaint(spec, model);
  };
  CHECK(said(first + second).empty());
  std::string changed = first + second;
  changed[first.size() + 12 + 40] ^= 1;  // in the second record's data
  const std::string at = "a.tfrecord: at byte " + std::to_string(first.size() + 12);
  check_says(said(changed), {at, "the checksum of the record's data is 0x"});
  spec.damaged = DamagedSample::skip;
  const auto source = opened(spec, model);
  CHECK(read(*source, model, 1).target[0] == 1);
  CHECK(source->work()->skipped == 1);
  // Where a length is wrong nobody knows where the next record begins.
  changed = first + second;
  changed[first.size()] ^= 1;
  check_says(said(changed), {"a.tfrecord: at byte " + std::to_string(first.size()),
                             "the checksum of a record's length is 0x"});
  check_says(said(std::string("\x1f\x8b\x08", 3) + first), {"at byte 0", "and not compressed?"});
  check_says(said(first + second.substr(0, 100)),
             {"at byte " + std::to_string(first.size() + 100), "ends, the record of byte"});
  check_says(said(first + second.substr(0, 5)), {"ends, 7 bytes too early"});
  spec.damaged.reset();
  check_says(said(record("no example")), {"at byte 12", "tf.train.Example"});
  check_says(said(record(example(stored("photo.jpg"), 3))),
             {"class 3, the model has 3: 0 to 2\n", "begin with 1", "a model of 4 outputs"});
  check_says(said(record(example("no image", 0))), {"is neither a JPEG nor a PNG image"});
}

TEST_CASE("the checksum of a TFRecord is counted with the decoding of its image") {
  const Folder folder("tfrecord-work");
  const ModelGraph model = classifier({3, 24, 24}, 3);
  const std::string image = feature("image", 1, field(1, stored("photo.png"))) +
                            feature("label", 3, std::string("\x08\x01", 2));
  folder.write("plain.tfrecord", record(field(1, image)));
  const std::string mask = feature("mask", 1, field(1, std::string(8'000'000, 'm')));
  folder.write("large.tfrecord", record(field(1, image + mask)));
  const auto work = [&](const char* name) {
    const auto source = opened(spec_of(DataFormat::tfrecord, folder.path / name), model);
    read(*source, model, 0);
    return source->work()->decode_cpu.count();
  };
  CHECK(work("large.tfrecord") > 4 * work("plain.tfrecord"));  // 8 MB against 48 x 36 pixels
}
