#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

#include "sim/calibration/profiles/profile.h"

namespace reckon {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 20U;

/// Gives back what inflateInit2() has taken.
struct Inflating {
  z_stream stream{};
  bool ready = false;
  Inflating() : ready(inflateInit2(&stream, 16 + MAX_WBITS) == Z_OK) {}  // gzip alone
  ~Inflating() {
    if (ready) inflateEnd(&stream);
  }
  Inflating(const Inflating&) = delete;
  Inflating& operator=(const Inflating&) = delete;
};

}  // namespace

Expected<std::string> unpacked(std::string_view file, std::string bytes, std::size_t most) {
  const auto wrong = [&](std::string what, std::string hint) {
    return tl::unexpected(Diagnostics{
        {Severity::error, {std::string(file), 0, 0}, std::move(what), std::move(hint)}});
  };
  const auto too_large = [&](std::size_t size) {
    return wrong(fmt::format("the profile has {} MiB or more", size >> 20U),
                 fmt::format("at most {} MiB are read: profile fewer steps", most >> 20U));
  };
  if (!std::string_view(bytes).starts_with("\x1f\x8b")) {
    if (bytes.size() > most) return too_large(bytes.size());
    return bytes;
  }
  Inflating inflating;
  if (!inflating.ready) return wrong("no memory to unpack it", "");
  z_stream& z = inflating.stream;
  z.next_in = reinterpret_cast<Bytef*>(bytes.data());
  std::size_t left = bytes.size();
  std::string out;
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    if (z.avail_in == 0) {
      z.avail_in = uInt(std::min(left, kChunk));
      left -= z.avail_in;
    }
    const std::size_t had = out.size();
    out.resize(had + kChunk);
    z.next_out = reinterpret_cast<Bytef*>(out.data() + had);
    z.avail_out = uInt(kChunk);
    state = inflate(&z, Z_NO_FLUSH);
    out.resize(out.size() - z.avail_out);
    if (out.size() > most) return too_large(out.size());
    if (state == Z_BUF_ERROR && left == 0)
      return wrong("the gzip file ends too early", "copy it again");
    if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR)
      return wrong(fmt::format("no gzip file: {}", z.msg != nullptr ? z.msg : "damaged"), "");
  }
  return out;
}

}  // namespace reckon
