#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "executor/data/images/crop.h"
#include "executor/data/shards/example.h"
#include "executor/data/shards/tar.h"
#include "executor/data/shards/tfrecord.h"
#include "executor/data/tokens/token_array.h"
#ifdef RECKON_WITH_S3
#include "executor/data/store/s3_answers.h"
#endif

// Samples as people store them. What is read lies within the file that it is read from; what is
// refused says why. The first byte says which format; checksums are put right where a fuzzer would
// never find them.
namespace {

using namespace reckon;
using namespace reckon::data;
using ByteSpan = std::span<const std::uint8_t>;

void require(bool condition) {
  if (!condition) std::abort();
}

/// One object whose bytes are at hand. Blocks are short, so that their seams are met.
class MemoryStore final : public Store {
 public:
  explicit MemoryStore(ByteSpan bytes) : bytes_(bytes) {}
  std::string place_of(const StoredObject& object) const override { return object.name; }
  void read(const StoredObject& object, std::int64_t offset,
            std::span<std::uint8_t> into) const override {
    require(offset >= 0 && offset <= std::ssize(bytes_));
    if (std::ssize(into) > std::ssize(bytes_) - offset) damaged(object, offset, "ends");
    if (!into.empty()) std::memcpy(into.data(), bytes_.data() + offset, into.size());
  }
  std::int64_t block() const override { return 100; }

 private:
  ByteSpan bytes_;
};

template <class Read>
void refuses_or_reads(const Read& read) {
  try {
    read();
  } catch (const DataError& e) {
    require(*e.what() != '\0');
  }
}

void image(ByteSpan bytes, int channels) {
  constexpr std::int64_t kSide = 8;
  const auto decoded = decode_image(bytes, channels);
  if (!decoded) return require(!decoded.error().empty());
  require(decoded->width > 0 && decoded->height > 0);
  require(std::ssize(decoded->pixels) == decoded->width * decoded->height * channels);
  constexpr Purpose kFuzz{"fuzz_of_crops"};
  RandomStream random(1, 0, kFuzz, static_cast<std::uint32_t>(bytes.size()));
  const data::Box box = random_box(decoded->width, decoded->height, random);
  const data::Box whole{0, 0, double(decoded->width), double(decoded->height)};
  std::vector<float> planes(static_cast<std::size_t>(channels * kSide * kSide));
  for (const auto& [part, within] :
       {std::pair{box, box}, {center_box(*decoded, kSide, kSide, kSide), whole}}) {
    resample(*decoded, part, within, bytes.size() % 2 == 0, kSide, kSide, planes);
    for (const float value : planes) require(value >= -0.01F && value <= 255.01F);
  }
}

void tar(ByteSpan bytes) {
  const StoredObject object{"x.tar", std::ssize(bytes)};
  // Sums of headers put right: of every block that could be one.
  std::vector<std::uint8_t> summed(bytes.begin(), bytes.end());
  constexpr std::size_t kBlock = 512, kAt = 148, kSize = 8;
  for (std::size_t at = 0; at + kBlock <= summed.size(); at += kBlock) {
    std::fill_n(summed.begin() + std::ptrdiff_t(at + kAt), kSize, std::uint8_t(' '));
    unsigned sum = 0;
    for (std::size_t k = 0; k < kBlock; ++k) sum += summed[at + k];
    if (sum == 8 * ' ') {
      std::fill_n(summed.begin() + std::ptrdiff_t(at + kAt), kSize, std::uint8_t(0));
      continue;  // a block of zeros is the end
    }
    char digits[kSize];
    std::snprintf(digits, sizeof digits, "%06o", sum);
    std::memcpy(&summed[at + kAt], digits, kSize - 1);
  }
  for (const ByteSpan one : {bytes, ByteSpan(summed)})
    refuses_or_reads([&] {
      const auto wanted = [](const std::string&) { return std::int64_t{16}; };
      for (const TarMember& member : tar_members(MemoryStore(one), object, wanted))
        require(member.offset >= 0 && member.size >= 0 &&
                member.size <= std::ssize(one) - member.offset &&
                std::ssize(member.begin) == std::min<std::int64_t>(16, member.size));
    });
}

void example(ByteSpan message) {
  const auto read = parse_image_example(message);
  if (!read) return require(!read.error().empty());
  const ByteSpan encoded = read->encoded;
  require(encoded.empty() || (encoded.data() >= message.data() &&
                              encoded.data() + encoded.size() <= message.data() + message.size()));
}

void tf_file(ByteSpan bytes) {
  // Lengths' sums put right, as far as the lengths lead.
  std::vector<std::uint8_t> summed(bytes.begin(), bytes.end());
  for (std::size_t at = 0; summed.size() - at >= 16;) {
    const std::uint32_t sum = masked_crc32c(ByteSpan(summed).subspan(at, 8));
    for (std::size_t k = 0; k < 4; ++k) summed[at + 8 + k] = std::uint8_t(sum >> 8 * k);
    std::uint64_t length = 0;
    std::memcpy(&length, &summed[at], sizeof length);
    if (length > summed.size() - at - 16) break;
    at += 16 + length;
  }
  const StoredObject object{"x.tfrecord", std::ssize(summed)};
  for (const ByteSpan one : {bytes, ByteSpan(summed)})
    refuses_or_reads([&] {
      for (const TfRecord& record : tf_records(MemoryStore(one), object)) {
        require(record.offset >= 12 && record.size >= 0);
        require(record.size + kChecksumBytes <= std::ssize(one) - record.offset);
        const auto data = checked_data(
            one.subspan(std::size_t(record.offset), std::size_t(record.size + kChecksumBytes)));
        if (data)
          example(*data);
        else
          require(!data.error().empty());
      }
    });
}

void require_within(const TokenArray& array) {
  require(array.begin >= 0 && array.count >= 0);
  require(array.count <= (array.object.size - array.begin) / bytes_of_token(array.type));
}

void tokens(ByteSpan bytes, bool numpy) {
  refuses_or_reads([&] {
    if (numpy) {
      require_within(npy_tokens(MemoryStore(bytes), {"x.npy", std::ssize(bytes)}));
    } else if (bytes.size() > 2) {
      const std::int64_t size = bytes[0] | bytes[1] << 8;  // of the tokens
      const ByteSpan index = bytes.subspan(2);
      require_within(
          megatron_tokens(MemoryStore(index), {"x.idx", std::ssize(index)}, {"x.bin", size}));
    }
  });
}

void answer([[maybe_unused]] ByteSpan bytes) {
#ifdef RECKON_WITH_S3
  const std::string xml(bytes.begin(), bytes.end());
  const auto list = parse_object_list(xml);
  if (!list) return require(!list.error().empty());
  for (const StoredObject& object : list->objects)
    require(!object.name.empty() && object.size >= 0);
  const Chosen chosen = choose_objects("a/b", list->objects);
  require(chosen.objects.size() <= list->objects.size());
  parse_store_error(xml);
#endif
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const ByteSpan bytes(data + 1, size - 1);
  switch (data[0]) {
    case 'i':
      image(bytes, 3);
      break;
    case 'g':
      image(bytes, 1);
      break;
    case 't':
      tar(bytes);
      break;
    case 'r':
      tf_file(bytes);
      break;
    case 'e':
      example(bytes);
      break;
    case 'n':
    case 'm':
      tokens(bytes, data[0] == 'n');
      break;
    case 'x':
      answer(bytes);
      break;
    default:
      break;
  }
  return 0;
}
