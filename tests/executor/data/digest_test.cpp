#include "executor/train/data/digest.h"

#include "executor/data/data_files.h"

// What ranks and resumed runs know a set by, without reading all of it.
using namespace reckon;
using namespace reckon::test;

namespace {

std::string known_by(DataFormat format, const fs::path& path, const ModelGraph& model) {
  return files_text(*opened(spec_of(format, path), model));
}

}  // namespace

TEST_CASE("a folder of images is known by names, sizes and classes, wherever it lies") {
  const ModelGraph model = classifier({3, 24, 24}, 3);
  const std::string photo = stored("photo.jpg"), grey = stored("grey.jpg");
  const Folder one("digest_one"), other("digest_other");
  for (const Folder* folder : {&one, &other}) {
    folder->write("ant/1.jpg", photo);
    folder->write("bee/2.jpg", grey);
  }
  other.write("notes.txt", "no sample");
  other.write("ant/notes.txt", "no sample");
  const auto known = [&](const Folder& folder) {
    return known_by(DataFormat::image_folder, folder.path, model);
  };
  const std::string first = known(one);
  CHECK(known(other) == first);
  CHECK_THAT(first, Catch::Matches("2 samples in files of digest [0-9a-f]{16}"));
  other.write("bee/2.jpg", photo);  // of another size
  CHECK(known(other) != first);
  other.write("bee/2.jpg", grey);
  CHECK(known(other) == first);
  fs::rename(other.path / "bee/2.jpg", other.path / "bee/3.jpg");
  CHECK(known(other) != first);
  fs::rename(other.path / "bee/3.jpg", other.path / "bee/2.jpg");
  fs::rename(other.path / "ant", other.path / "cat");  // the classes change their order
  CHECK(known(other) != first);
}

TEST_CASE("one file is known by its size, and characters also by their ids") {
  const ModelGraph model = language_model(50, 4);
  const Folder folder("digest_file");
  const auto known = [&](DataFormat format, const std::string& name, const std::string& bytes) {
    return known_by(format, folder.write(name, bytes), model);
  };
  const std::string letters = "abcdefghijkl";
  CHECK(known(DataFormat::characters, "a", letters) == known(DataFormat::characters, "b", letters));
  CHECK(known(DataFormat::characters, "a", letters) !=
        known(DataFormat::characters, "b", "abcdefghijkm"));
  const std::string ids(24, '\1');
  CHECK(known(DataFormat::tokens, "a", ids) == known(DataFormat::tokens, "b", ids));
  CHECK(known(DataFormat::tokens, "a", ids) != known(DataFormat::tokens, "b", ids + "\1\1"));
}

TEST_CASE("shards are known by their names and by where their samples lie") {
  const ModelGraph model = classifier({3, 24, 24}, 3);
  const Folder one("digest_shards"), other("digest_shards_other");
  const std::string jpg = record(example(stored("photo.jpg"), 1)),
                    png = record(example(stored("photo.png"), 2));
  one.write("a.tfrecord", jpg + png);
  const auto known = [&](const Folder& folder) {
    return known_by(DataFormat::tfrecord, folder.path, model);
  };
  const std::string first = known(one);
  other.write("a.tfrecord", jpg + png);
  CHECK(known(other) == first);
  other.write("a.tfrecord", png + jpg);
  CHECK(known(other) != first);
  fs::remove(other.path / "a.tfrecord");
  other.write("b.tfrecord", jpg + png);
  CHECK(known(other) != first);
}

TEST_CASE("samples that are made up are of no files") {
  const auto source = open_samples({}, {}, classifier({3, 24, 24}, 3), 1, 12);
  CHECK(files_text(*source).empty());
}
