#include <algorithm>
#include <boost/crc.hpp>
#include <cmath>
#include <set>

#include "executor/data/data_files.h"
#include "executor/data/images/crop.h"

using namespace reckon;
using namespace reckon::test;
using data::decode_image;

namespace {

/// The largest difference from pixels that Pillow has.
int difference(const data::Image& image, const std::string& raw) {
  REQUIRE(image.pixels.size() == raw.size());
  int most = 0;
  for (std::size_t k = 0; k < raw.size(); ++k)
    most = std::max(most, std::abs(image.pixels[k] - static_cast<unsigned char>(raw[k])));
  return most;
}
data::Image decoded(const std::string& name, int channels = 3) {
  const auto image = decode_image(bytes_of(stored(name)), channels);
  INFO(name << ": " << (image ? "" : image.error()));
  REQUIRE(image);
  return *image;
}

std::string big(std::uint32_t value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> shift & 0xFF);
  return text;
}
std::string chunk(const std::string& name, const std::string& content) {
  boost::crc_32_type crc;
  crc.process_bytes((name + content).data(), 4 + content.size());
  return big(static_cast<std::uint32_t>(content.size())) + name + content + big(crc.checksum());
}
/// A PNG of one line of 16 bits a channel, stored without compression. `kind`: 0 grey, 2 colours.
std::string wide_png(int width, char kind, const std::string& pixels) {
  const std::string line = '\0' + pixels;
  std::uint32_t a = 1, b = 0;  // Adler-32
  for (const char c : line) {
    a = (a + static_cast<unsigned char>(c)) % 65521;
    b = (b + a) % 65521;
  }
  const auto size = static_cast<std::uint16_t>(line.size());
  const std::string stored_block =
      std::string("\x78\x01\x01") + little(size) + little(static_cast<std::uint16_t>(~size)) + line;
  return "\x89PNG\r\n\x1A\n" +
         chunk("IHDR", big(static_cast<std::uint32_t>(width)) + big(1) + '\x10' + kind +
                           std::string(3, '\0')) +
         chunk("IDAT", stored_block + big(b << 16 | a)) + chunk("IEND", "");
}

/// The largest difference of planes from Pillow's pixels, which it rounds twice.
double difference(const std::vector<float>& planes, const std::string& raw) {
  REQUIRE(planes.size() == raw.size());
  double most = 0;
  const std::size_t plane = planes.size() / 3;
  for (std::size_t p = 0; p < plane; ++p)
    for (std::size_t c = 0; c < 3; ++c)
      most = std::max(most, std::abs(double(planes[c * plane + p]) -
                                     double(static_cast<unsigned char>(raw[3 * p + c]))));
  return most;
}
std::vector<float> scaled(const data::Image& image, const data::Box& box, const data::Box& within,
                          std::int64_t height, std::int64_t width, bool mirrored = false) {
  std::vector<float> planes(static_cast<std::size_t>(3 * height * width));
  data::resample(image, box, within, mirrored, height, width, planes);
  return planes;
}

DataSpec folder_of(const Folder& folder) {
  return {.format = DataFormat::image_folder, .path = folder.path.string()};
}

}  // namespace

TEST_CASE("PNG and JPEG files have the pixels that Pillow reads from them") {
  CHECK(difference(decoded("photo.png"), stored("photo.rgb")) == 0);
  CHECK(difference(decoded("palette.png"), stored("palette.rgb")) == 0);
  CHECK(difference(decoded("alpha.png"), stored("photo.rgb")) == 0);  // alpha is left out
  CHECK(difference(decoded("photo.jpg"), stored("photo.jpg.rgb")) <= 1);
  CHECK(difference(decoded("progressive.jpg"), stored("photo.jpg.rgb")) <= 1);
  CHECK(difference(decoded("cmyk.jpg"), stored("cmyk.jpg.rgb")) <= 2);
  CHECK(difference(decoded("grey.jpg", 1), stored("photo-grey.bin")) <= 6);
  CHECK(difference(decoded("photo.png", 1), stored("photo-grey.bin")) == 0);
  CHECK(difference(decoded("alpha.png", 1), stored("photo-grey.bin")) == 0);
  CHECK(decoded("grey.jpg", 3).pixels.size() == stored("photo.rgb").size());
}

TEST_CASE(
    "a PNG's pixels are those of the file: gamma is not applied, of 16 bits the upper 8 count") {
  const std::string png = stored("photo.png"), linear("\0\1\x86\xA0", 4);  // gamma 1.0
  constexpr std::size_t kBehindHeader = 33;
  const auto image = decode_image(
      bytes_of(png.substr(0, kBehindHeader) + chunk("gAMA", linear) + png.substr(kBehindHeader)),
      3);
  REQUIRE(image);
  CHECK(difference(*image, stored("photo.rgb")) == 0);
  const auto pixels_of = [](const std::string& bytes, int channels) {
    const auto decoded = decode_image(bytes_of(bytes), channels);
    INFO((decoded ? "" : decoded.error()));
    REQUIRE(decoded);
    return decoded->pixels;
  };
  using Pixels = std::vector<std::uint8_t>;
  const std::string colours = wide_png(2, 2, "\x10\xFF\x20\x80\x30\x01\x40\x02\x50\x03\x60\x04");
  CHECK(pixels_of(colours, 3) == Pixels{0x10, 0x20, 0x30, 0x40, 0x50, 0x60});
  // Grey: 0.299 * 16 + 0.587 * 32 + 0.114 * 48 = 29.04; 0.299 * 64 + 0.587 * 80 + 0.114 * 96
  // = 77.04
  CHECK(pixels_of(colours, 1) == Pixels{29, 77});
  const std::string grey = wide_png(2, 0, "\x10\xFF\xC0\x80");
  CHECK(pixels_of(grey, 1) == Pixels{0x10, 0xC0});
  CHECK(pixels_of(grey, 3) == Pixels{0x10, 0x10, 0x10, 0xC0, 0xC0, 0xC0});
}

TEST_CASE("an image that is cut off, changed or none says what is wrong with it") {
  const auto complaint_of = [](const std::string& bytes) {
    const auto image = decode_image(bytes_of(bytes), 3);
    return image ? "" : image.error();
  };
  const std::string jpeg = stored("photo.jpg"), png = stored("photo.png");
  check_says(complaint_of(jpeg.substr(0, jpeg.size() / 2)), {"damaged JPEG", "end"});
  check_says(complaint_of(jpeg.substr(0, 40)), {"damaged JPEG"});
  check_says(complaint_of(png.substr(0, png.size() / 2)), {"damaged PNG"});
  std::string changed = png;
  changed[png.size() - 14] ^= 1;  // 12 bytes of the end, before them the checksum of the pixels
  check_says(complaint_of(changed), {"damaged PNG", "CRC"});
  check_says(complaint_of("GIF89a"), {"is neither a JPEG nor a PNG image"});
  check_says(complaint_of(""), {"is empty"});
  // The header of a PNG of 2^30 x 2^30 pixels, its checksum put right.
  std::string large = png;
  large.replace(16, 8, std::string("\x40\0\0\0\x40\0\0\0", 8));
  CHECK(!complaint_of(large).empty());
}

TEST_CASE(
    "a JPEG with bytes between its header's segments or with zeros at its end is read, one with "
    "others behind a scan is not") {
  const std::string jpeg = stored("photo.jpg");
  const auto with = [](std::string bytes, std::size_t at, const std::string& more) {
    return bytes.insert(at, more);
  };
  const auto pixels_of = [](const std::string& bytes) {
    const auto image = decode_image(bytes_of(bytes), 3);
    INFO((image ? "" : image.error()));
    REQUIRE(image);
    return image->pixels;
  };
  const std::vector<std::uint8_t> right = pixels_of(jpeg);
  constexpr std::size_t kBehindJfif = 20, kVersion = 11;
  REQUIRE(jpeg.substr(kBehindJfif, 2) == "\xFF\xDB");
  CHECK(pixels_of(with(jpeg, kBehindJfif, "\x01\x02\x03\x04")) == right);
  std::string unknown = jpeg;
  unknown[kVersion] = 7;  // of JFIF
  CHECK(pixels_of(unknown) == right);
  CHECK(pixels_of(with(jpeg, jpeg.size() - 2, std::string(99, '\0'))) == right);
  const auto complaint_of = [](const std::string& bytes) {
    const auto image = decode_image(bytes_of(bytes), 3);
    return image ? "" : image.error();
  };
  check_says(complaint_of(with(jpeg, jpeg.size() - 2, "\x11\x22\x33\x44")),
             {"damaged JPEG", "extraneous bytes before marker 0xd9"});
  // What is wrong with the header does not hide what is wrong with the pixels.
  std::string both = with(jpeg, kBehindJfif, "\x01\x02\x03\x04");
  both.erase(both.size() - 200, 100);  // of the scan
  check_says(complaint_of(both), {"damaged JPEG", "Corrupt JPEG data"});
  both[kVersion] = 7;
  check_says(complaint_of(both), {"damaged JPEG", "Corrupt JPEG data"});
}

TEST_CASE("parts of images are scaled as Pillow scales them") {
  const data::Image image = decoded("photo.png");
  const data::Box whole{0, 0, 48, 36};
  CHECK(difference(scaled(image, {7, 5, 34, 24}, whole, 14, 20), stored("shrunk-20x14.rgb")) <=
        1.01);
  const data::Box part{11, 9, 10, 7};
  CHECK(difference(scaled(image, part, part, 14, 20), stored("grown-20x14.rgb")) <= 1.01);
  const data::Box middle = data::center_box(image, 18, 12, 16);
  CHECK(middle == data::Box{8, 6, 32, 24});
  CHECK(difference(scaled(image, middle, whole, 12, 16), stored("center-16x12.rgb")) <= 1.01);
  // Mirrored: the same lines from right to left.
  std::vector<float> plain = scaled(image, part, part, 14, 20);
  const std::vector<float> mirrored = scaled(image, part, part, 14, 20, true);
  for (auto line = plain.begin(); line != plain.end(); line += 20) std::reverse(line, line + 20);
  CHECK(plain == mirrored);
  // An image that is its own crop and size stays what it is.
  CHECK(difference(scaled(image, whole, whole, 36, 48), stored("photo.rgb")) < 1e-3);
}

TEST_CASE("random crops are 8 to 100 % of an image, at ratios of 3/4 to 4/3, and within it") {
  constexpr Purpose kTest{"test_of_crops"};
  double area = 0;
  constexpr int kDraws = 2000;
  for (int k = 0; k < kDraws; ++k) {
    RandomStream random(7, 0, kTest, static_cast<std::uint32_t>(k));
    const data::Box box = data::random_box(500, 375, random);
    CHECK((box.left >= 0 && box.top >= 0));
    CHECK((box.left + box.width <= 500 && box.top + box.height <= 375));
    // Rounding to whole pixels changes a side by half a pixel.
    CHECK(box.width * box.height / (500 * 375) > 0.079);
    CHECK(box.width / box.height > 0.74);
    CHECK(box.width / box.height < 1.35);
    area += box.width * box.height / (500 * 375) / kDraws;
  }
  CHECK(area > 0.4);  // (0.08 + 1) / 2, less what large parts that do not fit take away
  CHECK(area < 0.54);
  // Nothing that narrow fits: the middle is taken.
  RandomStream random(7, 0, kTest, 0);
  const data::Box strip = data::random_box(1000, 10, random);
  CHECK(strip == data::Box{493, 0, 13, 10});
}

TEST_CASE("a folder a class: classes in order of their names, and any depth") {
  const Folder folder("image-folder");
  folder.write("zebra/1.png", stored("photo.png"));
  folder.write("ant/b.JPG", stored("photo.jpg"));
  folder.write("ant/more/a.jpeg", stored("progressive.jpg"));
  folder.write("ant/list.txt", "no image");
  folder.write("ant-eater/1.png", stored("photo.png"));  // '-' is less than '/'
  folder.write("README", "no class");
  const ModelGraph model = classifier({3, 12, 16}, 3);
  DataSpec spec = folder_of(folder);
  spec.crop = ImageCrop::center;
  spec.resize = 18;
  const auto source = opened(spec, model);
  REQUIRE(source->samples() == 4);
  std::vector<float> classes;
  for (std::int64_t k = 0; k < 4; ++k) classes.push_back(read(*source, model, k).target[0]);
  CHECK(classes == std::vector<float>{0, 0, 1, 2});
  // Normalised by the mean and deviation of ImageNet's channels.
  const Sample zebra = read(*source, model, 3);
  const std::string raw = stored("center-16x12.rgb");
  const double red = static_cast<unsigned char>(raw[0]) / 255.0;
  CHECK(zebra.input[0] == Approx((red - 0.485) / 0.229).margin(0.03));
  const double blue = static_cast<unsigned char>(raw[3 * 191 + 2]) / 255.0;
  CHECK(zebra.input[2 * 192 + 191] == Approx((blue - 0.406) / 0.225).margin(0.03));
}

TEST_CASE("crops are functions of seed, visit and sample") {
  const Folder folder("image-crops");
  for (const char* name : {"a/1.png", "a/2.png", "b/1.png"})
    folder.write(name, stored("photo.png"));
  const ModelGraph model = classifier({3, 24, 24}, 2);
  const auto source = opened(folder_of(folder), model, 5),
             again = opened(folder_of(folder), model, 5),
             other = opened(folder_of(folder), model, 6);
  const Sample first = read(*source, model, 0);
  CHECK(read(*again, model, 0) == first);
  CHECK(read(*source, model, 0) == first);
  CHECK(read(*source, model, 0, 1).input != first.input);
  CHECK(read(*source, model, 1).input != first.input);  // the same picture, another sample
  CHECK(read(*other, model, 0).input != first.input);
  // crop none takes what has the model's size, as it is, and flip mirrors half of it.
  const ModelGraph exact = classifier({3, 36, 48}, 2);
  DataSpec spec = folder_of(folder);
  spec.crop = ImageCrop::none;
  const Sample plain = read(*opened(spec, exact), exact, 0);
  spec.flip = true;
  const auto flips = opened(spec, exact);
  int mirrored = 0;
  for (std::int64_t visit = 0; visit < 40; ++visit)
    mirrored += read(*flips, exact, 0, visit).input == plain.input ? 0 : 1;
  CHECK(mirrored > 8);
  CHECK(mirrored < 32);
}

TEST_CASE("folders of images that are not what the model takes are refused") {
  const Folder folder("image-folder-bad");
  const ModelGraph model = classifier({3, 24, 24}, 2);
  check_says(complaint(folder_of(folder), model), {folder.path.string(), "there are no files"});
  folder.write("list.txt", "");
  check_says(complaint(folder_of(folder), model), {"holds no images", "one folder a class"});
  folder.write("a/1.png", stored("photo.png"));
  folder.write("b/1.webp", "RIFF");
  check_says(complaint(folder_of(folder), model), {"class b has no .jpg, .jpeg or .png files"});
  folder.write("b/1.png", stored("photo.png"));
  CHECK(complaint(folder_of(folder), model).empty());
  folder.write("c/1.png", stored("photo.png"));
  check_says(complaint(folder_of(folder), model), {"holds 3 classes, the model has 2"});
  check_says(complaint(folder_of(folder), language_model(10, 4)),
             {"holds images and classes, which the model does not take"});
  DataSpec spec = folder_of(folder);
  spec.path += "/a/1.png";
  check_says(complaint(spec, model), {"is no folder"});
  spec = folder_of(folder);
  spec.crop = ImageCrop::none;
  check_says(complaint(spec, classifier({3, 24, 24}, 3)),
             {"a/1.png", "has 48 x 36 pixels, the model takes 24 x 24", "crop: center"});
  spec.crop = ImageCrop::center;
  spec.resize = 20;
  check_says(complaint(spec, classifier({3, 24, 24}, 3)),
             {"workload.data.resize is 20, less than the 24 x 24 pixels"});
}

TEST_CASE("a damaged image is named, or the next stands in its place and it is counted") {
  const Folder folder("image-damaged");
  folder.write("a/1.jpg", stored("photo.jpg"));
  folder.write("a/2.jpg", stored("photo.jpg").substr(0, 700));
  folder.write("b/1.png", stored("photo.png"));
  const ModelGraph model = classifier({3, 24, 24}, 2);
  DataSpec spec = folder_of(folder);
  check_says(complaint(spec, model), {(folder.path / "a/2.jpg").string(), "damaged JPEG"});
  spec.damaged = DamagedSample::skip;
  const auto source = opened(spec, model);
  const Sample second = read(*source, model, 1), third = read(*source, model, 2);
  CHECK(second.target == std::vector<float>{1});
  CHECK(second == third);
  const InputWork work = source->work().value();
  CHECK(work.samples == 2);
  CHECK(work.skipped == 1);
  check_says(work.first_skipped, {"a/2.jpg", "damaged JPEG"});
  CHECK(work.read.v == double(700 + stored("photo.png").size() + stored("photo.png").size()));
  CHECK(work.decode_cpu.count() > 0);
  CHECK(work.reading.count() > 0);
  for (const char* name : {"a/1.jpg", "b/1.png"}) folder.write(name, "none");
  check_says(complaint(spec, model), {"damaged", "and so are all others"});
}

TEST_CASE("an image that changes while a run goes on is an error") {
  const Folder folder("image-changes");
  folder.write("a/1.png", stored("photo.png"));
  const ModelGraph model = classifier({3, 24, 24}, 2);
  const auto source = opened(folder_of(folder), model);
  folder.write("a/1.png", "shorter");
  CHECK_THROWS_WITH(read(*source, model, 0), Catch::Matchers::Contains("has 7 bytes now"));
}
