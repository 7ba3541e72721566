#pragma once
#include <span>
#include <string>
#include <vector>

#include "executor/train/data/source.h"

// One function a format; open_data() chooses. See source.h for what each reads.
namespace reckon::data {

enum class PartOfSet { training, test };
std::unique_ptr<DataSource> open_cifar10(const std::filesystem::path& folder,
                                         const SampleFormat& format,
                                         PartOfSet part = PartOfSet::training);
std::unique_ptr<DataSource> open_mnist(const std::filesystem::path& folder,
                                       const SampleFormat& format,
                                       PartOfSet part = PartOfSet::training);
std::unique_ptr<DataSource> open_images(const std::filesystem::path& folder,
                                        const SampleFormat& format,
                                        const std::vector<std::string>& classes);
enum class TokenWidth { uint16, byte, character };
std::unique_ptr<DataSource> open_tokens(const std::filesystem::path& file, TokenWidth width,
                                        const SampleFormat& format);

/// Why the begin of a file of uint16 tokens looks as if they were wider: the upper half of each
/// uint32 or int64 would be a token that is too small for so many of them. "": it does not.
std::string why_wider_tokens(std::span<const std::uint8_t> begin, std::int64_t vocabulary);
/// So much of a file is looked at.
inline constexpr std::int64_t kLookedAtBytes = 65'536;

std::unique_ptr<DataSource> open_clicks(SampleFormat format, std::uint64_t seed,
                                        std::int64_t samples, double zipf_exponent);

/// Throws DataError unless the model takes one input of that many elements and gives one class, and
/// has at least `classes` of them.
void require_classes(const std::filesystem::path& path, const SampleFormat& format,
                     const Shape& shape, std::int64_t classes);

}  // namespace reckon::data
