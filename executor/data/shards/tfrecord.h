#pragma once
#include <vector>

#include "executor/data/store/store.h"

namespace reckon::data {

/// A record's data in a TFRecord file.
struct TfRecord {
  std::int64_t offset = 0, size = 0;
};

/// The records of a file, by the lengths in front of them: uint64 length, masked CRC32C of the
/// length, data, masked CRC32C of the data, all little-endian [TensorFlow, "TFRecord and
/// tf.train.Example", "TFRecords format details"]. The data are not read. Throws DataError with
/// the offset: a length whose checksum is wrong, a record that is cut off.
std::vector<TfRecord> tf_records(const Store& store, const StoredObject& file);

/// Data and the checksum behind it: the data. Error: the checksum differs.
tl::expected<std::span<const std::uint8_t>, std::string> checked_data(
    std::span<const std::uint8_t> data_and_checksum);
inline constexpr std::int64_t kChecksumBytes = 4;

/// CRC32C [Castagnoli; RFC 3720, appendix B.4], as TensorFlow masks it: rotated by 15 bits, plus
/// 0xa282ead8.
std::uint32_t masked_crc32c(std::span<const std::uint8_t> bytes);

}  // namespace reckon::data
