#include "exchange/unpacked_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>

namespace reckon {
namespace {

constexpr std::string_view kGzipMagic = "\x1f\x8b";

std::string unpacked(std::string_view bytes, const std::filesystem::path& file) {
  const auto fail = [&](const std::string& why) -> std::runtime_error {
    return std::runtime_error(fmt::format("cannot unpack '{}': {}", file.string(), why));
  };
  z_stream stream{};
  constexpr int kGzip = 15 + 16;  // the largest window, with gzip's header
  if (inflateInit2(&stream, kGzip) != Z_OK) throw fail("zlib does not start");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> ended(&stream, inflateEnd);
  std::string text;
  std::array<char, 1U << 16U> block{};
  int state = Z_OK;
  while (!bytes.empty() || state != Z_STREAM_END) {
    if (state == Z_STREAM_END) {                  // a file of several members
      if (!bytes.starts_with(kGzipMagic)) break;  // padding
      inflateReset(&stream);
    }
    const std::size_t given = std::min<std::size_t>(bytes.size(), std::size_t{1} << 30U);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(given);
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    state = inflate(&stream, Z_NO_FLUSH);
    const std::size_t made = block.size() - stream.avail_out;
    if (state == Z_BUF_ERROR && made == 0) throw fail("it is cut short");
    if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR)
      throw fail(stream.msg == nullptr ? "it is damaged" : stream.msg);
    bytes.remove_prefix(given - stream.avail_in);
    text.append(block.data(), made);
    if (text.size() > kLongestStream)
      throw fail(
          fmt::format("it holds more than {} bytes; unpack it with gunzip first", kLongestStream));
  }
  return text;
}

}  // namespace

UnpackedFile::UnpackedFile(const std::filesystem::path& file)
    : file_(file), packed_(file_.bytes().starts_with(kGzipMagic)) {
  if (packed_) text_ = unpacked(file_.bytes(), file);
}

}  // namespace reckon
