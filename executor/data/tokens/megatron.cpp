#include <fmt/format.h>

#include <limits>

#include "executor/data/store/object_reader.h"
#include "executor/data/tokens/token_array.h"

namespace reckon::data {
namespace {

constexpr std::array<std::uint8_t, 9> kIndexMagic{'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0};
constexpr std::int64_t kVersionAt = 9, kTypeAt = 17, kCountsAt = 18, kLengthsAt = 34;

/// The codes of megatron.core's DType; 6 and 7 are floating-point numbers.
std::optional<TokenType> type_of_code(std::uint64_t code) {
  switch (code) {
    case 1:
      return TokenType::uint8;
    case 2:
      return TokenType::int8;
    case 3:
      return TokenType::int16;
    case 4:
      return TokenType::int32;
    case 5:
      return TokenType::int64;
    case 8:
      return TokenType::uint16;
    default:
      return std::nullopt;
  }
}

struct IndexHead {
  TokenType type{};
  std::int64_t sequences = 0, documents = 0;
};

IndexHead read_head(ObjectReader& idx, std::int64_t size) {
  std::array<std::uint8_t, kIndexMagic.size()> magic{};
  idx.read(magic);
  if (magic != kIndexMagic)
    idx.damaged(0, "is no index of Megatron: it does not begin with MMIDIDX");
  const std::uint64_t version = read_little_endian<8>(idx);
  if (version != 1) idx.damaged(kVersionAt, fmt::format("version {}, 1 is read", version));
  const std::uint64_t code = read_little_endian<1>(idx);
  const auto type = type_of_code(code);
  if (!type)
    idx.damaged(kTypeAt, fmt::format("type {} of tokens; those of whole numbers are 1 (uint8), 2 "
                                     "(int8), 3 (int16), 4 (int32), 5 (int64) and 8 (uint16)",
                                     code));
  const std::uint64_t sequences = read_little_endian<8>(idx),
                      documents = read_little_endian<8>(idx);
  // 12 bytes a sequence, 8 a document, and one more a sequence where it has modes.
  const auto left = static_cast<std::uint64_t>(size - kLengthsAt);
  const bool fits = sequences <= left / 12 && documents <= (left - 12 * sequences) / 8;
  const std::uint64_t rest = fits ? left - 12 * sequences - 8 * documents : 0;
  if (!fits || (rest != 0 && rest != sequences))
    idx.damaged(kCountsAt, fmt::format("{} sequences and {} places of documents, which {} bytes do "
                                       "not hold",
                                       sequences, documents, left));
  return {*type, static_cast<std::int64_t>(sequences), static_cast<std::int64_t>(documents)};
}

}  // namespace

TokenArray megatron_tokens(const Store& store, const StoredObject& index, const StoredObject& bin) {
  // Lengths and places stand apart: both are read on at once.
  ObjectReader lengths(store, index), places(store, index);
  const IndexHead head = read_head(lengths, index.size);
  places.skip(kLengthsAt + 4 * head.sequences, "the lengths of the sequences");
  const std::int64_t each = bytes_of_token(head.type);
  std::int64_t tokens = 0;
  for (std::int64_t k = 0; k < head.sequences; ++k) {
    const std::int64_t length_at = lengths.at(), place_at = places.at();
    const auto length = static_cast<std::int32_t>(read_little_endian<4>(lengths));
    const auto place = static_cast<std::int64_t>(read_little_endian<8>(places));
    if (length < 0) lengths.damaged(length_at, fmt::format("sequence {} has {} tokens", k, length));
    if (place != tokens * each)
      places.damaged(place_at,
                     fmt::format("sequence {} begins at byte {} of {}; behind those before "
                                 "it stands byte {}",
                                 k, place, store.place_of(bin), tokens * each));
    tokens += length;  // at most 2^31 a sequence, of which fewer than 2^60 / 12 are in a file
  }
  std::int64_t before = 0;
  for (std::int64_t k = 0; k < head.documents; ++k) {
    const std::int64_t at = places.at();
    const auto first = static_cast<std::int64_t>(read_little_endian<8>(places));
    const bool last_is_end = k + 1 < head.documents || first == head.sequences;
    if ((k == 0 && first != 0) || first < before || first > head.sequences || !last_is_end)
      places.damaged(at, fmt::format("document {} begins with sequence {}, the one before with {}, "
                                     "and there are {} sequences",
                                     k, first, before, head.sequences));
    before = first;
  }
  if (tokens > bin.size / each || tokens * each != bin.size)
    throw DataError(
        fmt::format("{}: has {} bytes; {} says {} tokens of {} bytes: are they of one "
                    "corpus?",
                    store.place_of(bin), bin.size, store.place_of(index), tokens, each));
  return {bin, 0, tokens, head.type};
}

}  // namespace reckon::data
