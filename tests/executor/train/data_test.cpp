#include <algorithm>
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <set>

#include "executor/train/data/source.h"
#include "executor/train/networks.h"
#include "support/sample_files.h"

using namespace reckon;
namespace fs = std::filesystem;

namespace {

ModelGraph language_model(std::int64_t vocabulary, std::int64_t tokens) {
  return *make_transformer("lm", {.layers = 1,
                                  .hidden = 8,
                                  .heads = 2,
                                  .vocabulary = vocabulary,
                                  .sequence_length = tokens,
                                  .positions = tokens});
}

struct Sample {
  std::vector<float> input, target;
};
Sample read(const DataSource& source, const ModelGraph& model, std::int64_t index) {
  SampleBatch batch(sample_format(model), 2);
  source.read(index, batch, 1);
  const auto in = batch.input(0, 1), out = batch.target(0, 1);
  return {{in.begin(), in.end()}, {out.begin(), out.end()}};
}

/// What opening or reading all samples says is wrong; "" where nothing is.
std::string complaint(DataFormat format, const fs::path& path, const ModelGraph& model) {
  try {
    const auto source = open_data({format, path.string()}, {}, model, 1, 0);
    for (std::int64_t i = 0; i < source->samples(); ++i) read(*source, model, i);
    return "";
  } catch (const DataError& e) {
    return e.what();
  }
}

std::string big_endian(std::uint32_t x) {
  return {static_cast<char>(x >> 24), static_cast<char>(x >> 16), static_cast<char>(x >> 8),
          static_cast<char>(x)};
}
std::string bytes_of(std::initializer_list<int> values) {
  std::string text;
  for (const int v : values) text += static_cast<char>(v);
  return text;
}
void check_complaint(const std::string& text, std::initializer_list<std::string> parts) {
  for (const std::string& part : parts) CHECK_THAT(text, Catch::Matchers::Contains(part));
}

}  // namespace

TEST_CASE("CIFAR-10 records are read across files, and normalised by channel") {
  const test::Folder folder("cifar");
  std::string first(2 * 3073, '\0'), second(3073, '\0');
  first[3073] = 7;                                  // the second image's class
  first[3073 + 1 + 1024] = static_cast<char>(255);  // its first green pixel
  second[0] = 3;
  folder.write("data_batch_1.bin", first);
  folder.write("data_batch_2.bin", second);
  const ModelGraph model = test::classifier({3, 32, 32}, 10);
  const auto source = open_data({DataFormat::cifar10, folder.path.string()}, {}, model, 1, 0);
  CHECK(source->samples() == 3);
  const Sample image = read(*source, model, 1);
  CHECK(image.target == std::vector<float>{7});
  CHECK(image.input[0] == Approx(-0.4914 / 0.2470));
  CHECK(image.input[1024] == Approx((1 - 0.4822) / 0.2435));
  CHECK(read(*source, model, 2).target == std::vector<float>{3});

  const DataSpec spec{DataFormat::cifar10, folder.path.string()};
  CHECK_THROWS_WITH(open_test_set(spec, {}, model), Catch::Matchers::Contains("test_batch.bin"));
  folder.write("test_batch.bin", first);
  const auto test_set = open_test_set(spec, {}, model);
  CHECK(test_set->samples() == 2);
  CHECK(read(*test_set, model, 1).target == std::vector<float>{7});
}

TEST_CASE("damaged and unfit CIFAR-10 files are named with the byte") {
  const test::Folder folder("cifar-bad");
  const ModelGraph model = test::classifier({3, 32, 32}, 10);
  check_complaint(complaint(DataFormat::cifar10, folder.path, model), {"data_batch_1.bin"});
  folder.write("data_batch_1.bin", std::string(3073 + 100, '\0'));
  check_complaint(complaint(DataFormat::cifar10, folder.path, model),
                  {"data_batch_1.bin: at byte 3073", "3073 bytes is truncated"});
  std::string wrong(2 * 3073, '\0');
  wrong[3073] = 10;
  folder.write("data_batch_1.bin", wrong);
  check_complaint(complaint(DataFormat::cifar10, folder.path, model),
                  {"at byte 3073: class 10, there are 10"});
  check_complaint(complaint(DataFormat::cifar10, folder.path, test::classifier({3, 16, 16}, 10)),
                  {"holds images of (3, 32, 32), the model takes (3, 16, 16)"});
  check_complaint(complaint(DataFormat::cifar10, folder.path, test::classifier({3, 32, 32}, 5)),
                  {"holds 10 classes, the model has 5"});
}

TEST_CASE("MNIST files are read, for models of images and of records") {
  const test::Folder folder("mnist");
  folder.write("train-images-idx3-ubyte", big_endian(0x803) + big_endian(2) + big_endian(2) +
                                              big_endian(3) +
                                              bytes_of({0, 1, 2, 3, 4, 5, 0, 0, 255, 0, 0, 0}));
  folder.write("train-labels-idx1-ubyte", big_endian(0x801) + big_endian(2) + bytes_of({4, 9}));
  const ModelGraph images = test::classifier({1, 2, 3}, 10), record = test::classifier({6}, 10);
  for (const ModelGraph* model : {&images, &record}) {
    const auto source = open_data({DataFormat::mnist, folder.path.string()}, {}, *model, 1, 0);
    CHECK(source->samples() == 2);
    const Sample sample = read(*source, *model, 1);
    CHECK(sample.target == std::vector<float>{9});
    CHECK(sample.input[2] == Approx((1 - 0.1307) / 0.3081));
  }

  folder.write("t10k-images-idx3-ubyte", big_endian(0x803) + big_endian(1) + big_endian(2) +
                                             big_endian(3) + bytes_of({255, 0, 0, 0, 0, 0}));
  folder.write("t10k-labels-idx1-ubyte", big_endian(0x801) + big_endian(1) + bytes_of({3}));
  const auto test_set = open_test_set({DataFormat::mnist, folder.path.string()}, {}, images);
  CHECK(test_set->samples() == 1);
  CHECK(read(*test_set, images, 0).target == std::vector<float>{3});
}

TEST_CASE("damaged MNIST files are named with the byte") {
  const test::Folder folder("mnist-bad");
  const ModelGraph model = test::classifier({1, 2, 3}, 10);
  const std::string header = big_endian(0x803) + big_endian(2) + big_endian(2) + big_endian(3);
  folder.write("train-labels-idx1-ubyte", big_endian(0x801) + big_endian(2) + bytes_of({4, 9}));
  folder.write("train-images-idx3-ubyte", "\x1f\x8b\x08\x08 compressed");
  check_complaint(complaint(DataFormat::mnist, folder.path, model),
                  {"train-images-idx3-ubyte: at byte 0: magic number 0x1f8b0808",
                   "is the file still compressed?"});
  folder.write("train-images-idx3-ubyte", header + std::string(11, '\0'));
  check_complaint(complaint(DataFormat::mnist, folder.path, model),
                  {"at byte 27: the file has 27 bytes, its header says 28"});
  folder.write("train-images-idx3-ubyte", header + std::string(12, '\0'));
  folder.write("train-labels-idx1-ubyte", big_endian(0x801) + big_endian(1) + bytes_of({4}));
  check_complaint(complaint(DataFormat::mnist, folder.path, model),
                  {"train-labels-idx1-ubyte", "1 classes for 2 images"});
  folder.write("train-labels-idx1-ubyte", big_endian(0x801) + big_endian(2) + bytes_of({4, 77}));
  check_complaint(complaint(DataFormat::mnist, folder.path, model), {"at byte 9: class 77"});
}

TEST_CASE("a token file gives sequences whose targets are the next tokens") {
  const test::Folder folder("tokens");
  std::string file;
  for (int i = 0; i < 8; ++i) file += bytes_of({i * 50 % 256, i * 50 / 256});  // 0, 50 ... 350
  const fs::path path = folder.write("train.bin", file);
  const ModelGraph model = language_model(400, 3);
  const auto source = open_data({DataFormat::tokens, path.string()}, {}, model, 1, 0);
  CHECK(source->samples() == 2);  // (8 - 1) / 3
  const Sample sample = read(*source, model, 1);
  CHECK(sample.input == std::vector<float>{150, 200, 250});
  CHECK(sample.target == std::vector<float>{200, 250, 300});
  check_complaint(complaint(DataFormat::tokens, path, language_model(300, 3)),
                  {"train.bin: at byte 12: token 300, the model's vocabulary has 300"});
  check_complaint(complaint(DataFormat::tokens, path, language_model(400, 9)),
                  {"ends behind 8 tokens, one sample of the model takes 9 and the next"});
  check_complaint(complaint(DataFormat::tokens, folder.write("odd.bin", "abc"), model),
                  {"odd.bin: at byte 2: half a token"});
  check_complaint(complaint(DataFormat::tokens, folder.path / "none.bin", model), {"none.bin"});
  check_complaint(complaint(DataFormat::tokens, path, test::classifier({1, 2, 3}, 10)),
                  {"holds tokens, the model does not predict the next token"});
}

TEST_CASE("tokens of four bytes are not read as twice as many of two") {
  const test::Folder folder("tokens-wide");
  const auto file_of = [&](int upper_every) {
    std::string file;
    for (int i = 0; i < 100; ++i)
      file += bytes_of({i % 50, 1, upper_every > 0 && i % upper_every == 0 ? 1 : 0, 0});
    return folder.write("wide.bin", file);
  };
  check_complaint(complaint(DataFormat::tokens, file_of(0), language_model(400, 3)),
                  {"wide.bin: format tokens is of uint16, these look like uint32: every second "
                   "one is 0\n",
                   "numpy.fromfile('tokens.bin', '<u4')"});
  check_complaint(complaint(DataFormat::tokens, file_of(3), language_model(100'000, 3)),
                  {"every second one is at most 1"});
  // Of two bytes a 1 here and there is a token.
  const auto data = [](const fs::path& path) {
    return DataSpec{.format = DataFormat::tokens, .path = path.string()};
  };
  CHECK(open_data(data(file_of(3)), {}, language_model(400, 3), 1, 0)->samples() == 66);
  const fs::path zeros = folder.write("zeros.bin", std::string(1000, '\0'));
  CHECK(open_data(data(zeros), {}, language_model(400, 3), 1, 0)->samples() == 166);
}

TEST_CASE("text is read as bytes, or as the ranks of its characters") {
  const test::Folder folder("text");
  const fs::path path = folder.write("a.txt", "cab");
  const ModelGraph model = language_model(128, 2);
  const auto bytes = open_data({DataFormat::text, path.string()}, {}, model, 1, 0);
  CHECK(read(*bytes, model, 0).input == std::vector<float>{'c', 'a'});
  const auto ranks = open_data({DataFormat::characters, path.string()}, {}, model, 1, 0);
  CHECK(read(*ranks, model, 0).input == std::vector<float>{2, 0});
  CHECK(read(*ranks, model, 0).target == std::vector<float>{0, 1});
  check_complaint(complaint(DataFormat::characters, path, language_model(2, 2)),
                  {"holds 3 different characters, the model's vocabulary has 2"});
}

TEST_CASE("a folder of images has a class for each folder in it") {
  const test::Folder folder("images");
  folder.write("cats/b.ppm", "P6\n# a comment\n2 1\n255\n" + bytes_of({255, 0, 0, 0, 0, 255}));
  folder.write("cats/a.ppm", "P6 2 1 255 " + bytes_of({0, 0, 0, 0, 0, 0}));
  folder.write("dogs/c.ppm", "P6 2 1 255 " + bytes_of({255, 255, 255, 255, 255, 255}));
  folder.write("dogs/notes.txt", "not an image");
  const ModelGraph model = test::classifier({3, 1, 2}, 2);
  const auto source = open_data({DataFormat::images, folder.path.string()}, {}, model, 1, 0);
  CHECK(source->samples() == 3);
  CHECK(read(*source, model, 1).input == std::vector<float>{1, -1, -1, -1, -1, 1});  // planes
  CHECK(read(*source, model, 1).target == std::vector<float>{0});
  CHECK(read(*source, model, 2).target == std::vector<float>{1});
}

TEST_CASE("classes of PPM images: empty ones are refused, validation has the training set's") {
  const test::Folder folder("images-classes");
  const std::string pixels = "P6 1 1 255 " + std::string(3, '\0');
  for (const char* name : {"train/ant/1.ppm", "train/bee/1.ppm", "train/.hidden/1.ppm",
                           "few/bee/1.ppm", "more/cow/1.ppm"})
    folder.write(name, pixels);
  const ModelGraph model = test::classifier({3, 1, 1}, 3);
  const auto from = [&](const char* below, const std::vector<std::string>& classes = {}) {
    return open_data({DataFormat::images, (folder.path / below).string()}, {}, model, 1, 0, 0,
                     classes);
  };
  const auto training = from("train");
  CHECK(training->classes() == std::vector<std::string>{"ant", "bee"});
  REQUIRE(training->warnings().size() == 1);
  check_complaint(training->warnings()[0], {"holds 2 classes, the model has 3 outputs: one will"});
  const auto few = from("few", training->classes());
  CHECK(read(*few, model, 0).target == std::vector<float>{1});
  CHECK(few->warnings().empty());
  CHECK_THROWS_WITH(from("more", training->classes()),
                    Catch::Matchers::Contains("the training set does not have: cow"));
  fs::create_directories(folder.path / "train/ape");
  check_complaint(complaint(DataFormat::images, folder.path / "train", model),
                  {"class ape has no .ppm or .pgm files"});
}

TEST_CASE("damaged and unfit images are named") {
  const test::Folder folder("images-bad");
  const ModelGraph model = test::classifier({3, 1, 2}, 2);
  const auto with = [&](const std::string& file) {
    folder.write("a/x.ppm", file);
    return complaint(DataFormat::images, folder.path, model);
  };
  check_complaint(complaint(DataFormat::images, folder.path, model), {"holds no images"});
  check_complaint(complaint(DataFormat::images, folder.path / "none", model), {"is no folder"});
  check_complaint(with("P3 2 1 255 "), {"x.ppm: at byte 0: is no binary PPM (P6) or PGM (P5)"});
  check_complaint(with("P6 2 x"), {"x.ppm: at byte 5: a number of the header is missing"});
  check_complaint(with("P6 2 1 65535 "), {"largest value 65535"});
  check_complaint(with("P6 2 1 255 " + std::string(5, '\0')),
                  {"at byte 16: the file ends, its header says 17 bytes"});
  check_complaint(with("P6 3 1 255 " + std::string(9, '\0')),
                  {"holds images of (3, 1, 3), the model takes (3, 1, 2)"});
}

TEST_CASE(
    "synthetic samples are functions of seed and number, with the moments that they promise") {
  constexpr std::int64_t kValues = 40'000;
  const ModelGraph model = test::classifier({kValues}, 10);
  const auto of = [&](std::uint64_t seed, std::int64_t sample) {
    const auto source = open_data({}, {}, model, seed, 100);
    return read(*source, model, sample).input;
  };
  const std::vector<float> values = of(7, 3);
  // Whole numbers until the last operation: these bits are those of every machine.
  const auto scaled = [](int twice_the_sum) { return float(twice_the_sum) * (1.0F / 75674.45F); };
  CHECK(values[0] == scaled(-118'564));
  CHECK(values[1] == scaled(-39'900));
  CHECK(values[kValues - 1] == scaled(-15'976));
  double sum = 0, squares = 0, largest = 0;
  for (const float v : values) {
    sum += v;
    squares += double(v) * v;
    largest = std::max(largest, std::abs(double(v)));
  }
  // Deviations of the estimates: 1/200 of the mean, less than 1/250 of the deviation.
  CHECK(std::abs(sum / kValues) < 0.025);
  CHECK(std::sqrt(squares / kValues) == Approx(1).epsilon(0.02));
  CHECK(largest <= 2 * std::sqrt(3));  // the ends of a sum of four uniform numbers
  CHECK(of(7, 3) == values);
  CHECK(of(7, 4) != values);
  CHECK(of(8, 3) != values);
}
