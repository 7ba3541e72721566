#include "executor/data/data_files.h"

using namespace reckon;
using namespace reckon::test;

namespace {

void put_photos(const Folder& folder, std::initializer_list<const char*> classes) {
  for (const char* name : classes) folder.write(std::string(name) + "/1.png", stored("photo.png"));
}
DataSpec images_in(const fs::path& path) { return spec_of(DataFormat::image_folder, path); }
std::vector<float> classes_in(const DataSource& source, const ModelGraph& model) {
  std::vector<float> classes;
  for (std::int64_t k = 0; k < source.samples(); ++k)
    classes.push_back(read(source, model, k).target[0]);
  return classes;
}

}  // namespace

TEST_CASE("classes without images are refused together, hidden files and folders are none") {
  const Folder folder("folder-classes");
  const ModelGraph model = classifier({3, 24, 24}, 3);
  put_photos(folder, {"ant", "cow", "dog", ".ipynb_checkpoints"});
  folder.write("ant/._1.png", "of macOS");
  folder.write("cow/.cache/2.png", "hidden");
  const auto source = opened(images_in(folder.path), model);
  CHECK(classes_in(*source, model) == std::vector<float>{0, 1, 2});
  CHECK(source->classes() == std::vector<std::string>{"ant", "cow", "dog"});
  CHECK(source->warnings().empty());
  fs::create_directories(folder.path / "bee");  // torchvision numbers it and refuses it
  check_says(complaint(images_in(folder.path), classifier({3, 24, 24}, 4)),
             {folder.path.string() + ": class bee has no .jpg, .jpeg or .png files"});
  folder.write("cat/1.txt", "");
  check_says(complaint(images_in(folder.path), model),
             {": 3 faults:\n  ", "class bee has no", "class cat has no",
              "holds 5 classes, the model has 3"});
}

TEST_CASE("a validation folder is numbered by the classes of the training set") {
  const Folder folder("folder-validation");
  const ModelGraph model = classifier({3, 24, 24}, 3);
  put_photos(folder, {"train/ant", "train/bee", "train/cow", "few/cow", "few/bee", "more/ant",
                      "more/dog", "more/elk"});
  const auto training = opened(images_in(folder.path / "train"), model);
  const auto validation = [&](const char* name) {
    return open_samples(images_in(folder.path / name), {}, model, 1, 0, 0, training->classes());
  };
  const auto few = validation("few");
  CHECK(classes_in(*few, model) == std::vector<float>{1, 2});
  CHECK(few->warnings().empty());
  CHECK_THROWS_WITH(validation("more"),
                    Catch::Matchers::Contains("more: holds classes that the training set does not "
                                              "have: dog, elk\n"));
}

TEST_CASE("fewer classes than the model has outputs, and images of other kinds, are warned of") {
  const Folder folder("folder-warnings");
  put_photos(folder, {"ant", "bee"});
  const auto few = opened(images_in(folder.path), classifier({3, 24, 24}, 10))->warnings();
  REQUIRE(few.size() == 1);
  CHECK(few[0] == folder.path.string() +
                      " holds 2 classes, the model has 10 outputs: 8 of them will never be right");
  folder.write("ant/2.webp", "RIFF");
  folder.write("bee/2.GIF", "GIF89a");
  folder.write("bee/notes.txt", "");
  const auto other = opened(images_in(folder.path), classifier({3, 24, 24}, 2))->warnings();
  REQUIRE(other.size() == 1);
  CHECK(other[0] == "2 files are left out that are neither JPEG nor PNG, the first is " +
                        (folder.path / "ant/2.webp").string() +
                        ": convert what you want to train on");
}

TEST_CASE("a link that leads back to its own folder is named") {
  const Folder folder("folder-loop");
  const ModelGraph model = classifier({3, 24, 24}, 2);
  put_photos(folder, {"ant", "bee"});
  fs::create_directory_symlink(folder.path / "bee", folder.path / "ant/bees");  // no loop
  CHECK(opened(images_in(folder.path), model)->samples() == 3);
  fs::create_directory_symlink("..", folder.path / "bee/up");
  check_says(complaint(images_in(folder.path), model), {"/up: the link leads back to a folder"});
  fs::remove(folder.path / "bee/up");
  fs::create_directory_symlink("self", folder.path / "bee/self");
  check_says(complaint(images_in(folder.path), model), {"/self: Too many levels of symbolic"});
}
