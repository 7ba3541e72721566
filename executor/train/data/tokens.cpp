#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "executor/train/data/digest.h"
#include "executor/train/data/file.h"
#include "executor/train/data/formats.h"

// Sequences out of one long file: sample i holds the tokens [i T, i T + T], of which the first T go
// in and the last T come out.
namespace reckon::data {
namespace {

class TokenSource : public DataSource {
 public:
  TokenSource(const std::filesystem::path& path, TokenWidth width, const SampleFormat& format)
      : file_(path), bytes_(width == TokenWidth::uint16 ? 2 : 1) {
    const bool predicts = format.inputs.size() == 1 && format.targets.size() == 1 &&
                          format.inputs[0].shape.size() == 1 && !format.inputs[0].ids.empty() &&
                          format.targets[0].shape == format.inputs[0].shape;
    if (!predicts)
      throw DataError(fmt::format("{}: holds tokens, the model does not predict the next token",
                                  path.string()));
    tokens_ = format.inputs[0].shape[0];
    vocabulary_ = format.inputs[0].ids[0].below;
    if (file_.size() % bytes_ != 0)
      file_.damaged(file_.size() - 1, "half a token: the file is truncated or no uint16 file");
    if (width == TokenWidth::uint16) {
      std::vector<std::uint8_t> begin(
          static_cast<std::size_t>(std::min(file_.size(), kLookedAtBytes)));
      file_.read(0, begin);
      if (const std::string why = why_wider_tokens(begin, vocabulary_); !why.empty())
        throw DataError(fmt::format("{}: {}", path.string(), why));
    }
    const std::int64_t count = file_.size() / bytes_;
    samples_ = (count - 1) / tokens_;
    if (count < tokens_ + 1)
      file_.damaged(file_.size(),
                    fmt::format("ends behind {} tokens, one sample of the model takes "
                                "{} and the next",
                                count, tokens_));
    for (std::size_t b = 0; b < ids_.size(); ++b) ids_[b] = static_cast<std::int32_t>(b);
    if (width == TokenWidth::character) rank_characters();
  }

  std::int64_t samples() const override { return samples_; }
  /// With the ids of characters, which other files may have otherwise.
  std::string digest() const override {
    DataDigest digest;
    digest.add(file_.size());
    for (const std::int32_t id : ids_) digest.add(id);
    return digest.text();
  }

  void read(std::int64_t index, SampleBatch& batch, std::int64_t at) const override {
    std::vector<std::uint8_t> raw(static_cast<std::size_t>((tokens_ + 1) * bytes_));
    const std::int64_t first = index * tokens_ * bytes_;
    file_.read(first, raw);
    const auto in = batch.input(0, at), out = batch.target(0, at);
    for (std::size_t t = 0; t <= static_cast<std::size_t>(tokens_); ++t) {
      const std::int64_t id = bytes_ == 2 ? raw[2 * t] | raw[2 * t + 1] << 8 : ids_[raw[t]];
      if (id >= vocabulary_)
        file_.damaged(first + static_cast<std::int64_t>(t) * bytes_,
                      fmt::format("token {}, the model's vocabulary has {}", id, vocabulary_));
      if (t < in.size()) in[t] = static_cast<float>(id);
      if (t > 0) out[t - 1] = static_cast<float>(id);
    }
  }

 private:
  void rank_characters() {
    std::array<bool, 256> occurs{};
    std::vector<std::uint8_t> piece(1 << 20);
    for (std::int64_t offset = 0; offset < file_.size();) {
      const auto size = static_cast<std::size_t>(
          std::min<std::int64_t>(static_cast<std::int64_t>(piece.size()), file_.size() - offset));
      file_.read(offset, std::span(piece).first(size));
      for (std::size_t i = 0; i < size; ++i) occurs[piece[i]] = true;
      offset += static_cast<std::int64_t>(size);
    }
    std::int32_t next = 0;
    for (std::size_t b = 0; b < ids_.size(); ++b)
      if (occurs[b]) ids_[b] = next++;
    if (next > vocabulary_)
      throw DataError(
          fmt::format("{}: holds {} different characters, the model's vocabulary has {}",
                      file_.path().string(), next, vocabulary_));
  }

  DataFile file_;
  std::int64_t bytes_, tokens_ = 0, vocabulary_ = 0, samples_ = 0;
  std::array<std::int32_t, 256> ids_{};  // by byte
};

}  // namespace

std::string why_wider_tokens(std::span<const std::uint8_t> begin, std::int64_t vocabulary) {
  constexpr std::size_t kPairs = 64;  // fewer may be so by chance
  const std::size_t pairs = begin.size() / 4;
  if (pairs < kPairs) return "";
  bool all_zero = true;
  const std::int64_t most = (vocabulary - 1) >> 16;  // of an upper half
  for (std::size_t k = 0; k < pairs; ++k) {
    const int lower = begin[4 * k] | begin[4 * k + 1] << 8,
              upper = begin[4 * k + 2] | begin[4 * k + 3] << 8;
    if (upper > most) return "";
    all_zero = all_zero && lower == 0;
  }
  if (all_zero) return "";
  return fmt::format(
      "format tokens is of uint16, these look like uint32: every second one is {}\n  "
      "numpy.save('tokens.npy', numpy.fromfile('tokens.bin', '<u4')) makes a file of format: "
      "numpy, which says its type",
      most == 0 ? std::string("0") : fmt::format("at most {}", most));
}

std::unique_ptr<DataSource> open_tokens(const std::filesystem::path& file, TokenWidth width,
                                        const SampleFormat& format) {
  return std::make_unique<TokenSource>(file, width, format);
}

}  // namespace reckon::data
