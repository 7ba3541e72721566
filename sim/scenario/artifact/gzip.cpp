#include "sim/scenario/artifact/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <limits>
#include <stdexcept>

#include "sim/base/check.h"

namespace reckon::artifact {
namespace {

constexpr int kGzip = 16 + MAX_WBITS;  // [zlib manual, deflateInit2]
constexpr int kMemory = 8;             // the manual's default

Bytef* bytes_of(std::string& text) { return reinterpret_cast<Bytef*>(text.data()); }
/// zlib reads what it takes as its own to change, and does not change it.
Bytef* bytes_of(std::string_view text) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
}

struct Inflate {
  z_stream stream{};
  Inflate() {
    if (inflateInit2(&stream, kGzip) != Z_OK) throw std::runtime_error("zlib: no memory");
  }
  ~Inflate() { inflateEnd(&stream); }
  Inflate(const Inflate&) = delete;
  Inflate& operator=(const Inflate&) = delete;
};

}  // namespace

std::string packed(std::string_view bytes) {
  RECKON_CHECK(bytes.size() <= kLargestText);
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY) !=
      Z_OK)
    throw std::runtime_error("zlib: no memory");
  std::string out(deflateBound(&stream, static_cast<uLong>(bytes.size())), '\0');
  stream.next_in = bytes_of(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = bytes_of(out);
  stream.avail_out = static_cast<uInt>(out.size());
  const int end = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  RECKON_CHECK(end == Z_STREAM_END);
  return out;
}

bool is_packed(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

tl::expected<std::string, std::string> unpacked(std::string_view bytes, std::size_t most) {
  constexpr std::size_t kPiece = std::size_t{256} << 10;
  if (bytes.size() > std::numeric_limits<uInt>::max())
    return tl::unexpected<std::string>("too large");
  Inflate inflater;
  z_stream& stream = inflater.stream;
  stream.next_in = bytes_of(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  for (int end = Z_OK; end != Z_STREAM_END;) {
    const std::size_t have = out.size();
    out.resize(have + kPiece);
    stream.next_out = bytes_of(out) + have;
    stream.avail_out = kPiece;
    end = inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
    if (end != Z_OK && end != Z_STREAM_END)
      return tl::unexpected(fmt::format("cannot be unpacked: {}",
                                        stream.msg != nullptr ? stream.msg : "it is truncated"));
    if (out.size() > most)
      return tl::unexpected(fmt::format("unpacks to more than {} MiB", most >> 20U));
  }
  if (stream.avail_in > 0) return tl::unexpected<std::string>("bytes behind its end");
  return out;
}

}  // namespace reckon::artifact
