#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <csetjmp>

#include "executor/data/images/decode.h"

// libpng reports errors by a jump over the functions in between. So those that call it, between
// `setjmp` and their end, have no objects with destructors: all that is allocated is a member of
// the reader.
namespace reckon::data {
namespace {

class PngReader {
 public:
  explicit PngReader(std::span<const std::uint8_t> bytes) : left_(bytes) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, &on_error, &on_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  /// Size and kind. False: damage() says why not.
  bool read_header() {
    if (info_ == nullptr) return false;
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_read_fn(png_, this, &on_read);
    png_set_benign_errors(png_, 1);  // warnings, as for the simplified interface
    png_read_info(png_, info_);
    return true;
  }
  std::int64_t width() const { return png_get_image_width(png_, info_); }
  std::int64_t height() const { return png_get_image_height(png_, info_); }
  bool has_colours() const { return (png_get_color_type(png_, info_) & PNG_COLOR_MASK_COLOR) != 0; }

  /// All rows in 8 bits, in 3 channels where `colours` asks for it or the image has them, else in
  /// 1. Values are those of the file: what it says of gamma and colour profiles is not applied, of
  /// 16 bits the upper 8 are taken, alpha is left out [Pillow, Image.convert]. False: see damage().
  bool read_rows(bool colours) {
    rows_.assign(static_cast<std::size_t>(height()), nullptr);
    const bool three = colours || has_colours();
    const auto of_row = static_cast<std::size_t>(width()) * (three ? 3 : 1);
    pixels_.resize(rows_.size() * of_row);
    for (std::size_t y = 0; y < rows_.size(); ++y) rows_[y] = &pixels_[y * of_row];
    return read_into_rows(three, of_row);
  }
  std::vector<std::uint8_t> take_pixels() { return std::move(pixels_); }
  std::string damage() const {
    return fmt::format("damaged PNG: {}", error_[0] != '\0' ? error_ : "libpng cannot be started");
  }

 private:
  bool read_into_rows(bool colours, std::size_t of_row) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_expand(png_);  // palettes, fewer than 8 bits
    png_set_strip_16(png_);
    png_set_strip_alpha(png_);
    if (colours) png_set_gray_to_rgb(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    if (png_get_rowbytes(png_, info_) != of_row) png_error(png_, "rows of another size");
    png_read_image(png_, rows_.data());
    return true;
  }

  [[noreturn]] static void on_error(png_structp png, png_const_charp what) {
    auto* const self = static_cast<PngReader*>(png_get_error_ptr(png));
    const std::string_view text = what;
    const std::size_t size = std::min(text.size(), sizeof self->error_ - 1);
    std::copy_n(text.begin(), size, self->error_);
    self->error_[size] = '\0';
    png_longjmp(png, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}
  static void on_read(png_structp png, png_bytep to, std::size_t count) {
    auto& left = static_cast<PngReader*>(png_get_io_ptr(png))->left_;
    if (count > left.size()) png_error(png, "ends too early");
    std::copy_n(left.begin(), count, to);
    left = left.subspan(count);
  }

  std::span<const std::uint8_t> left_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::vector<std::uint8_t> pixels_;
  std::vector<png_bytep> rows_;
  char error_[128]{};
};

}  // namespace

tl::expected<Image, std::string> decode_png(std::span<const std::uint8_t> bytes, int channels) {
  PngReader png(bytes);
  if (!png.read_header()) return tl::unexpected(png.damage());
  const std::int64_t width = png.width(), height = png.height();
  if (width * height > kMostPixels)
    return tl::unexpected(
        fmt::format("PNG of {} x {} pixels: at most {} are read", width, height, kMostPixels));
  if (!png.read_rows(channels == 3)) return tl::unexpected(png.damage());
  Image image{width, height, channels, png.take_pixels()};
  if (channels == 1 && png.has_colours()) {
    const auto pixels = static_cast<std::size_t>(width * height);
    for (std::size_t p = 0; p < pixels; ++p) {
      const std::uint8_t* const rgb = &image.pixels[3 * p];
      image.pixels[p] = luminance(rgb[0], rgb[1], rgb[2]);
    }
    image.pixels.resize(pixels);
  }
  return image;
}

}  // namespace reckon::data
