#include "executor/data/shards/tfrecord.h"

#include <fmt/format.h>

#include <boost/crc.hpp>

#include "executor/data/store/object_reader.h"

namespace reckon::data {
namespace {

constexpr std::size_t kLengthBytes = 8;

std::uint32_t checksum_in(std::span<const std::uint8_t, kChecksumBytes> bytes) {
  return static_cast<std::uint32_t>(little_endian(bytes));
}

}  // namespace

std::uint32_t masked_crc32c(std::span<const std::uint8_t> bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  const std::uint32_t sum = crc.checksum();
  return (sum >> 15 | sum << 17) + 0xa282ead8;
}

std::vector<TfRecord> tf_records(const Store& store, const StoredObject& file) {
  ObjectReader reader(store, file);
  std::vector<TfRecord> records;
  while (reader.left() > 0) {
    const std::int64_t at = reader.at();
    std::array<std::uint8_t, kLengthBytes + kChecksumBytes> head{};
    reader.read(head);
    const auto length_bytes = std::span(head).first<kLengthBytes>();
    const std::uint32_t said = checksum_in(std::span(head).last<kChecksumBytes>());
    const std::uint32_t sum = masked_crc32c(length_bytes);
    if (said != sum)
      reader.damaged(
          at,
          fmt::format("the checksum of a record's length is {:#010x}, {:#010x} is "
                      "expected{}",
                      said, sum, at == 0 ? ": is it a TFRecord file, and not compressed?" : ""));
    const std::uint64_t length =
        little_endian(std::span<const std::uint8_t, kLengthBytes>(length_bytes));
    if (length > static_cast<std::uint64_t>(reader.left()))
      reader.damaged(file.size,
                     fmt::format("ends, the record of byte {} has {} bytes", at, length));
    records.push_back({reader.at(), static_cast<std::int64_t>(length)});
    reader.skip(static_cast<std::int64_t>(length) + kChecksumBytes, "a record and its checksum");
  }
  return records;
}

tl::expected<std::span<const std::uint8_t>, std::string> checked_data(
    std::span<const std::uint8_t> all) {
  if (all.size() < kChecksumBytes) return tl::unexpected<std::string>("the record has no checksum");
  const auto data = all.first(all.size() - kChecksumBytes);
  const std::uint32_t said = checksum_in(all.last<kChecksumBytes>());
  const std::uint32_t sum = masked_crc32c(data);
  if (said != sum)
    return tl::unexpected(fmt::format(
        "the checksum of the record's data is {:#010x}, {:#010x} is expected", said, sum));
  return data;
}

}  // namespace reckon::data
