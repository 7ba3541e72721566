#pragma once
#include <string>
#include <string_view>

#include <tl/expected.hpp>

// One gzip member (RFC 1952) in memory, without a name and a time.
namespace reckon::artifact {

std::string packed(std::string_view bytes);
/// Bytes. A plan of the largest networks has a few million.
inline constexpr std::size_t kLargestText = std::size_t{64} << 20;
/// The reason, where `bytes` are not one whole member, or hold more than `most`.
tl::expected<std::string, std::string> unpacked(std::string_view bytes,
                                                std::size_t most = kLargestText);
/// Do they begin as a member does?
bool is_packed(std::string_view bytes);

}  // namespace reckon::artifact
