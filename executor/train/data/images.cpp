#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <vector>

#include "executor/train/data/classes.h"
#include "executor/train/data/digest.h"
#include "executor/train/data/file.h"
#include "executor/train/data/formats.h"

// Images with one class each.
namespace reckon::data {
namespace {

/// x in 0..255 -> (x / 255 - mean) / deviation, plane by plane.
struct Normal {
  float mean, deviation;
};
void normalise(std::span<const std::uint8_t> bytes, std::span<const Normal> planes,
               std::span<float> out) {
  const std::size_t plane = out.size() / planes.size();
  for (std::size_t c = 0; c < planes.size(); ++c)
    for (std::size_t i = c * plane; i < (c + 1) * plane; ++i)
      out[i] = (static_cast<float>(bytes[i]) / 255.0f - planes[c].mean) / planes[c].deviation;
}

// ---- CIFAR-10: records of a class and 3 planes of 32 x 32.

constexpr std::int64_t kCifarPixels = 3 * 32 * 32, kCifarRecord = 1 + kCifarPixels;
// Of the 50,000 training images, as the field rounds them (pytorch/examples,
// kuangliu/pytorch-cifar).
constexpr std::array<Normal, 3> kCifarNormal{
    {{0.4914f, 0.2470f}, {0.4822f, 0.2435f}, {0.4465f, 0.2616f}}};

class CifarSource : public DataSource {
 public:
  CifarSource(const std::filesystem::path& folder, const SampleFormat& format, PartOfSet part) {
    require_classes(folder, format, {3, 32, 32}, 10);
    if (part == PartOfSet::test) add(folder / "test_batch.bin");
    for (int i = 1; part == PartOfSet::training && i <= 5; ++i) {
      const auto path = folder / fmt::format("data_batch_{}.bin", i);
      if (i > 1 && !std::filesystem::exists(path)) break;  // a part of the set is a set
      add(path);
    }
  }
  std::int64_t samples() const override { return ends_.empty() ? 0 : ends_.back(); }
  std::string digest() const override {
    DataDigest digest;
    for (const std::int64_t end : ends_) digest.add(end);
    return digest.text();
  }
  void read(std::int64_t index, SampleBatch& batch, std::int64_t at) const override {
    const auto end = std::ranges::upper_bound(ends_, index);
    const auto k = static_cast<std::size_t>(end - ends_.begin());
    const std::int64_t offset = (index - (k == 0 ? 0 : ends_[k - 1])) * kCifarRecord;
    std::array<std::uint8_t, kCifarRecord> record{};
    files_[k].read(offset, record);
    if (record[0] > 9) files_[k].damaged(offset, fmt::format("class {}, there are 10", record[0]));
    batch.target(0, at)[0] = record[0];
    normalise(std::span(record).subspan(1), kCifarNormal, batch.input(0, at));
  }

 private:
  void add(const std::filesystem::path& path) {
    const DataFile& file = files_.emplace_back(path);
    if (file.size() == 0 || file.size() % kCifarRecord != 0)
      file.damaged(file.size() / kCifarRecord * kCifarRecord,
                   fmt::format("a record of {} bytes is truncated", kCifarRecord));
    ends_.push_back(samples() + file.size() / kCifarRecord);
  }

  std::vector<DataFile> files_;
  std::vector<std::int64_t> ends_;  // by file: samples before its end
};

// ---- MNIST: IDX files, sizes in big-endian.

std::int64_t big_endian(const DataFile& file, std::int64_t offset) {
  std::array<std::uint8_t, 4> b{};
  file.read(offset, b);
  return std::int64_t{b[0]} << 24 | b[1] << 16 | b[2] << 8 | b[3];
}

/// The dimensions of an IDX file of unsigned bytes; the data follow at 4 + 4 * rank.
Shape idx_shape(const DataFile& file, std::int64_t rank) {
  const std::int64_t magic = big_endian(file, 0);
  if (magic != 0x800 + rank)
    file.damaged(0, fmt::format("magic number {:#010x}, {:#010x} is expected: unsigned bytes in {} "
                                "dimensions (is the file still compressed?)",
                                magic, 0x800 + rank, rank));
  Shape shape;
  for (std::int64_t i = 0; i < rank; ++i) shape.push_back(big_endian(file, 4 + 4 * i));
  const std::int64_t wanted = 4 + 4 * rank + elements(shape);
  if (file.size() != wanted)
    file.damaged(std::min(file.size(), wanted),
                 fmt::format("the file has {} bytes, its header says {}", file.size(), wanted));
  return shape;
}

class MnistSource : public DataSource {
 public:
  MnistSource(const std::filesystem::path& folder, const SampleFormat& format, PartOfSet part)
      : images_(folder / fmt::format("{}-images-idx3-ubyte", begin_of_name(part))),
        classes_(folder / fmt::format("{}-labels-idx1-ubyte", begin_of_name(part))),
        shape_(idx_shape(images_, 3)) {
    const Shape count = idx_shape(classes_, 1);
    if (count[0] != shape_[0])
      classes_.damaged(4, fmt::format("{} classes for {} images", count[0], shape_[0]));
    require_classes(images_.path(), format, {1, shape_[1], shape_[2]}, 10);
  }
  std::int64_t samples() const override { return shape_[0]; }
  std::string digest() const override {
    return DataDigest().add(images_.size()).add(classes_.size()).text();
  }
  void read(std::int64_t index, SampleBatch& batch, std::int64_t at) const override {
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(shape_[1] * shape_[2]));
    images_.read(16 + index * shape_[1] * shape_[2], pixels);
    std::array<std::uint8_t, 1> label{};
    classes_.read(8 + index, label);
    if (label[0] > 9) classes_.damaged(8 + index, fmt::format("class {}, there are 10", label[0]));
    batch.target(0, at)[0] = label[0];
    constexpr Normal kNormal{0.1307f, 0.3081f};  // of the 60,000 training images; pytorch/examples
    normalise(pixels, std::span(&kNormal, 1), batch.input(0, at));
  }

 private:
  static std::string_view begin_of_name(PartOfSet part) {
    return part == PartOfSet::test ? "t10k" : "train";
  }
  DataFile images_, classes_;
  Shape shape_;  // (images, height, width)
};

// ---- Folders of PPM and PGM files.

struct Header {
  Shape shape;  // (C, H, W)
  std::int64_t data = 0;
};

/// netpbm's ppm(5) and pgm(5): magic, width, height, largest value, separated by white space and
/// comments, then the pixels.
Header netpbm_header(const DataFile& file) {
  std::array<std::uint8_t, 512> bytes{};
  const auto size = static_cast<std::size_t>(std::min<std::int64_t>(512, file.size()));
  file.read(0, std::span(bytes).first(size));
  const bool colour = size > 2 && bytes[0] == 'P' && bytes[1] == '6';
  if (size < 3 || (!colour && !(bytes[0] == 'P' && bytes[1] == '5')))
    file.damaged(0, "is no binary PPM (P6) or PGM (P5)");
  std::size_t at = 2;
  std::array<std::int64_t, 3> numbers{};  // width, height, largest value
  for (std::int64_t& number : numbers) {
    while (at < size && (std::isspace(bytes[at]) != 0 || bytes[at] == '#')) {
      if (bytes[at] == '#')
        while (at < size && bytes[at] != '\n') ++at;
      else
        ++at;
    }
    if (at == size || std::isdigit(bytes[at]) == 0)
      file.damaged(static_cast<std::int64_t>(at), "a number of the header is missing");
    for (; at < size && std::isdigit(bytes[at]) != 0 && number < 1'000'000; ++at)
      number = 10 * number + (bytes[at] - '0');
  }
  const auto end = static_cast<std::int64_t>(at) + 1;  // one white space
  if (numbers[2] != 255)
    file.damaged(end, fmt::format("largest value {}, only 255 is read", numbers[2]));
  const Header header{{colour ? 3 : 1, numbers[1], numbers[0]}, end};
  if (file.size() < end + elements(header.shape))
    file.damaged(file.size(), fmt::format("the file ends, its header says {} bytes",
                                          end + elements(header.shape)));
  return header;
}

class FolderSource : public DataSource {
 public:
  FolderSource(const std::filesystem::path& folder, const SampleFormat& format,
               const std::vector<std::string>& training)
      : classes_(training) {
    namespace fs = std::filesystem;
    if (!fs::is_directory(folder))
      throw DataError(fmt::format("{}: is no folder", folder.string()));
    std::vector<std::string> names = folders_in(folder);
    const auto numbers = class_numbers(folder.string(), names, training);
    for (std::size_t c = 0; c < names.size(); ++c) {
      const std::size_t first = files_.size();
      for (const auto& entry : fs::directory_iterator(folder / names[c])) {
        const auto extension = entry.path().extension();
        if ((extension == ".ppm" || extension == ".pgm") &&
            !is_hidden(entry.path().filename().string()))
          files_.push_back({entry.path(), static_cast<float>(numbers[c])});
      }
      if (files_.size() == first)
        throw DataError(
            fmt::format("{}: class {} has no .ppm or .pgm files", folder.string(), names[c]));
      std::sort(files_.begin() + static_cast<std::ptrdiff_t>(first), files_.end(),
                [](const Image& a, const Image& b) { return a.path < b.path; });
    }
    if (files_.empty())
      throw DataError(
          fmt::format("{}: holds no images: one folder a class with .ppm or .pgm files is expected",
                      folder.string()));
    shape_ = netpbm_header(DataFile(files_[0].path)).shape;
    require_classes(files_[0].path, format, shape_, std::ssize(names));
    if (!training.empty()) return;
    classes_ = std::move(names);
    fewer_ =
        why_fewer_classes(folder.string(), std::ssize(classes_), format.targets[0].ids[0].below);
  }
  std::vector<std::string> classes() const override { return classes_; }
  std::vector<std::string> warnings() const override {
    return fewer_.empty() ? std::vector<std::string>{} : std::vector{fewer_};
  }
  std::int64_t samples() const override { return static_cast<std::int64_t>(files_.size()); }
  std::string digest() const override {
    DataDigest digest;
    for (const Image& image : files_)
      digest.add(image.path.parent_path().filename().string())
          .add(image.path.filename().string())
          .add(static_cast<std::int64_t>(image.label));
    return digest.text();
  }
  void read(std::int64_t index, SampleBatch& batch, std::int64_t at) const override {
    const Image& image = files_[static_cast<std::size_t>(index)];
    const DataFile file(image.path);
    const Header header = netpbm_header(file);
    if (header.shape != shape_)
      throw DataError(fmt::format("{}: is {}, the first image is {}", image.path.string(),
                                  to_text(header.shape), to_text(shape_)));
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(elements(shape_)));
    file.read(header.data, pixels);
    const auto channels = static_cast<std::size_t>(shape_[0]);
    const std::size_t plane = pixels.size() / channels;
    const auto out = batch.input(0, at);
    for (std::size_t p = 0; p < plane; ++p)
      for (std::size_t c = 0; c < channels; ++c)
        out[c * plane + p] = static_cast<float>(pixels[p * channels + c]) / 127.5f - 1;
    batch.target(0, at)[0] = image.label;
  }

 private:
  struct Image {
    std::filesystem::path path;
    float label;
  };
  std::vector<Image> files_;
  std::vector<std::string> classes_;
  std::string fewer_;  // warning
  Shape shape_;
};

}  // namespace

std::unique_ptr<DataSource> open_cifar10(const std::filesystem::path& folder,
                                         const SampleFormat& format, PartOfSet part) {
  return std::make_unique<CifarSource>(folder, format, part);
}
std::unique_ptr<DataSource> open_mnist(const std::filesystem::path& folder,
                                       const SampleFormat& format, PartOfSet part) {
  return std::make_unique<MnistSource>(folder, format, part);
}
std::unique_ptr<DataSource> open_images(const std::filesystem::path& folder,
                                        const SampleFormat& format,
                                        const std::vector<std::string>& classes) {
  return std::make_unique<FolderSource>(folder, format, classes);
}

}  // namespace reckon::data
