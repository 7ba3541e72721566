#pragma once
#include <memory>
#include <optional>
#include <string_view>

#include "executor/data/store/store.h"
#include "sim/base/words.h"

namespace reckon::data {

/// Of one token, as NumPy calls it.
enum class TokenType { uint8, int8, int16, uint16, int32, uint32, int64 };
constexpr auto words_of(TokenType) {
  return std::array{
      Word<TokenType>{"uint8", TokenType::uint8}, Word<TokenType>{"int8", TokenType::int8},
      Word<TokenType>{"int16", TokenType::int16}, Word<TokenType>{"uint16", TokenType::uint16},
      Word<TokenType>{"int32", TokenType::int32}, Word<TokenType>{"uint32", TokenType::uint32},
      Word<TokenType>{"int64", TokenType::int64}};
}
constexpr std::int64_t bytes_of_token(TokenType type) {
  switch (type) {
    case TokenType::uint8:
    case TokenType::int8:
      return 1;
    case TokenType::int16:
    case TokenType::uint16:
      return 2;
    case TokenType::int32:
    case TokenType::uint32:
      return 4;
    case TokenType::int64:
      return 8;
  }
  return 0;
}

/// Tokens that stand one behind the other in an object, little-endian.
struct TokenArray {
  StoredObject object;
  std::int64_t begin = 0;  // its first byte
  std::int64_t count = 0;
  TokenType type = TokenType::uint16;
};

/// The array in a .npy file: 1 dimension, of whole numbers, little-endian [NumPy, "NEP 1: a simple
/// file format for NumPy arrays"; versions 1.0 to 3.0 of the format]. Throws DataError with what
/// the header says and what is read.
TokenArray npy_tokens(const Store& store, const StoredObject& file);

/// The tokens of a Megatron corpus [Megatron-LM, megatron/core/datasets/indexed_dataset.py,
/// IndexedDataset]: `bin` has them, documents back to back, `idx` says where each begins: magic
/// "MMIDIDX", version 1, type, lengths (int32) and places (int64) of the sequences, first sequence
/// of each document (int64). All of the index is read and held against itself and against the size
/// of `bin`. Throws DataError with the byte that is wrong.
TokenArray megatron_tokens(const Store& store, const StoredObject& idx, const StoredObject& bin);

}  // namespace reckon::data
