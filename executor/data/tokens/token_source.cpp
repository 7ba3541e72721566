#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "executor/data/input_meter.h"
#include "executor/data/sources.h"
#include "executor/data/tokens/token_array.h"
#include "executor/train/data/digest.h"
#include "executor/train/data/formats.h"
#include "kernels/record_id.h"

// Sequences out of one long array: sample i holds the tokens [i T, i T + T], of which the first T
// go in and the last T come out.
namespace reckon::data {
namespace {

std::int64_t token_at(const std::uint8_t* bytes, TokenType type) {
  const auto number = [bytes](auto wide) {
    std::uint64_t value = 0;
    for (std::size_t k = sizeof wide; k > 0; --k) value = value << 8 | bytes[k - 1];
    return static_cast<std::int64_t>(static_cast<decltype(wide)>(value));
  };
  switch (type) {
    case TokenType::uint8:
      return number(std::uint8_t{});
    case TokenType::int8:
      return number(std::int8_t{});
    case TokenType::int16:
      return number(std::int16_t{});
    case TokenType::uint16:
      return number(std::uint16_t{});
    case TokenType::int32:
      return number(std::int32_t{});
    case TokenType::uint32:
      return number(std::uint32_t{});
    case TokenType::int64:
      return number(std::int64_t{});
  }
  return 0;
}

class TokenWindows final : public DataSource {
 public:
  TokenWindows(std::unique_ptr<Store> store, TokenArray array, const SampleFormat& format)
      : store_(std::move(store)), array_(std::move(array)) {
    const std::string where = store_->place_of(array_.object);
    const bool predicts = format.inputs.size() == 1 && format.targets.size() == 1 &&
                          format.inputs[0].shape.size() == 1 && !format.inputs[0].ids.empty() &&
                          format.targets[0].shape == format.inputs[0].shape;
    if (!predicts)
      throw DataError(
          fmt::format("{}: holds tokens, the model does not predict the next token", where));
    length_ = format.inputs[0].shape[0];
    vocabulary_ = format.inputs[0].ids[0].below;
    if (array_.count < length_ + 1)
      throw DataError(
          fmt::format("{}: holds {} tokens, one sample of the model takes {} and the "
                      "next",
                      where, array_.count, length_));
    samples_ = (array_.count - 1) / length_;
  }
  std::int64_t samples() const override { return samples_; }
  std::string digest() const override {
    return DataDigest()
        .add(array_.object.size)
        .add(array_.begin)
        .add(array_.count)
        .add(to_text(array_.type))
        .text();
  }
  std::optional<InputWork> work() const override { return meter_.work(); }

  void read(std::int64_t index, SampleBatch& batch, std::int64_t at) const override {
    const std::int64_t each = bytes_of_token(array_.type);
    const std::int64_t first = array_.begin + index * length_ * each;
    std::vector<std::uint8_t> raw(static_cast<std::size_t>((length_ + 1) * each));
    meter_.read(*store_, array_.object, first, raw);
    const Seconds begin = processor_time();
    const auto in = batch.input(0, at), out = batch.target(0, at);
    for (std::size_t t = 0; t <= in.size(); ++t) {
      const std::int64_t id = token_at(&raw[t * static_cast<std::size_t>(each)], array_.type);
      if (id < 0 || id >= vocabulary_)
        store_->damaged(array_.object, first + static_cast<std::int64_t>(t) * each,
                        fmt::format("token {}, the model's vocabulary has {}", id, vocabulary_));
      if (t < in.size()) in[t] = record_number(id);
      if (t > 0) out[t - 1] = static_cast<float>(id);
    }
    meter_.count(processor_time() - begin);
  }

 private:
  std::unique_ptr<Store> store_;
  TokenArray array_;
  std::int64_t length_ = 0, vocabulary_ = 0, samples_ = 0;
  mutable InputMeter meter_;
};

const StoredObject& only_file(const Store& store, const std::string& where) {
  if (store.objects().size() != 1 || store.is_folder())
    throw DataError(
        fmt::format("{}: names {} files, one is expected", where, store.objects().size()));
  return store.objects().front();
}

const StoredObject& file_called(const Store& store, std::string_view ending,
                                const std::string& where) {
  const std::string name = where.substr(where.rfind('/') + 1) + std::string(ending);
  const auto found = std::ranges::find(store.objects(), name, &StoredObject::name);
  if (found == store.objects().end())
    throw DataError(
        fmt::format("{}{}: there is no such file: Megatron writes a .bin and an .idx "
                    "of one name",
                    where, ending));
  return *found;
}

}  // namespace

std::unique_ptr<DataSource> open_raw_tokens(std::unique_ptr<Store> store,
                                            const SampleFormat& format, const std::string& where) {
  const StoredObject file = only_file(*store, where);
  if (file.size % 2 != 0)
    store->damaged(file, file.size - 1, "half a token: the file is truncated or no uint16 file");
  if (format.inputs.size() == 1 && !format.inputs[0].ids.empty()) {
    std::vector<std::uint8_t> begin(static_cast<std::size_t>(std::min(file.size, kLookedAtBytes)));
    store->read(file, 0, begin);
    if (const std::string why = why_wider_tokens(begin, format.inputs[0].ids[0].below);
        !why.empty())
      throw DataError(fmt::format("{}: {}", store->place_of(file), why));
  }
  return std::make_unique<TokenWindows>(
      std::move(store), TokenArray{file, 0, file.size / 2, TokenType::uint16}, format);
}

std::unique_ptr<DataSource> open_numpy(std::unique_ptr<Store> store, const SampleFormat& format,
                                       const std::string& where) {
  TokenArray array = npy_tokens(*store, only_file(*store, where));
  return std::make_unique<TokenWindows>(std::move(store), std::move(array), format);
}

std::unique_ptr<DataSource> open_megatron(std::unique_ptr<Store> store, const SampleFormat& format,
                                          const std::string& where) {
  TokenArray array = megatron_tokens(*store, file_called(*store, ".idx", where),
                                     file_called(*store, ".bin", where));
  return std::make_unique<TokenWindows>(std::move(store), std::move(array), format);
}

}  // namespace reckon::data
